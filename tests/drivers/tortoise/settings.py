"""How Tortoise ORM reaches the server that the environment names."""

import os

TORTOISE_ORM = {
    "connections": {
        "default": {
            "engine": f"tortoise.backends.{os.environ.get('DRIVER', 'asyncpg')}",
            "credentials": {
                "host": os.environ["PGHOST"],
                "port": int(os.environ["PGPORT"]),
                "user": os.environ["PGUSER"],
                "password": None,
                "database": os.environ["PGDATABASE"],
            },
        }
    },
    "apps": {"models": {"models": ["models", "aerich.models"], "default_connection": "default"}},
    "use_tz": True,
}
# With its own migrations.
OWN = TORTOISE_ORM | {
    "apps": {"models": {"models": ["models"], "default_connection": "default", "migrations": "steps"}},
}
