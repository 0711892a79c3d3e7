"""A reference table with its rows"""

import sqlalchemy as sa
from alembic import op

revision = "first"
down_revision = None


def upgrade():
    country = op.create_table(
        "country",
        sa.Column("code", sa.CHAR(2), nullable=False),
        sa.Column("name", sa.Text, nullable=False, comment="in English"),
        sa.PrimaryKeyConstraint("code", name="pk_country"),
    )
    op.bulk_insert(country, [{"code": "de", "name": "Germany"}, {"code": "pe", "name": "Perú"}])


def downgrade():
    op.drop_table("country")
