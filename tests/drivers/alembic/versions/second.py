"""Tenants, accounts, events"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "second"
down_revision = "first"

state = postgresql.ENUM("new", "paid", "closed", name="state", create_type=False)


def upgrade():
    op.create_table(
        "tenant",
        sa.Column("id", sa.BigInteger, sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.String(60), nullable=False),
        sa.Column("country", sa.CHAR(2), nullable=False),
        sa.Column("made", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tenant"),
        sa.ForeignKeyConstraint(["country"], ["country.code"], name="fk_tenant_country_country"),
    )
    state.create(op.get_bind(), checkfirst=True)
    op.create_table(
        "account",
        sa.Column("tenant_id", sa.BigInteger, nullable=False),
        sa.Column("id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("mail", sa.Text, nullable=False),
        sa.Column("balance", sa.Numeric(12, 2), server_default="0", nullable=False),
        sa.Column("state", state, server_default="new", nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_account"),
        sa.UniqueConstraint("tenant_id", "mail", name="uq_account_tenant_id_mail"),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_account_balance")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_account_tenant_id_tenant"),
    )
    op.execute("CREATE SEQUENCE event_id")
    op.create_table(
        "event",
        sa.Column("tenant_id", sa.BigInteger, nullable=False),
        sa.Column("id", sa.BigInteger, nullable=False),
        sa.Column("account", sa.BigInteger),
        sa.Column("body", postgresql.JSONB, server_default="{}", nullable=False),
        sa.Column("tags", postgresql.ARRAY(sa.Text), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_event"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "account"],
            ["account.tenant_id", "account.id"],
            name="fk_event_tenant_id_account_account",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_event_body", "event", ["body"], postgresql_using="gin")


def downgrade():
    op.drop_table("event")
    op.execute("DROP SEQUENCE event_id")
    op.drop_table("account")
    state.drop(op.get_bind(), checkfirst=True)
    op.drop_table("tenant")
