"""How Alembic reaches the server that the environment names."""

import sys
from logging.config import fileConfig
from pathlib import Path

from alembic import context

sys.path.insert(0, str(Path(__file__).parent))
from models import Base, engine  # noqa: E402

fileConfig(context.config.config_file_name)
options = {"target_metadata": Base.metadata, "compare_type": True, "compare_server_default": True}

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    with engine().connect() as connection:
        context.configure(connection=connection, transaction_per_migration=True, **options)
        with context.begin_transaction():
            context.run_migrations()
