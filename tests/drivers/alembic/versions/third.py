"""What is done to tables that have rows: columns, types, names, keys, values in batches"""

import sqlalchemy as sa
from alembic import op

revision = "third"
down_revision = "second"


def upgrade():
    op.add_column("account", sa.Column("nick", sa.Text))
    op.execute("UPDATE account SET nick = split_part(mail, '@', 1)")
    op.alter_column("account", "nick", nullable=False)
    op.alter_column("account", "nick", new_column_name="short_name", server_default="")
    op.create_index("ix_account_short_name", "account", ["tenant_id", sa.text("lower(short_name)")])
    with op.get_context().autocommit_block():
        op.create_index("ix_event_account", "event", ["account"], postgresql_concurrently=True, if_not_exists=True)
        op.execute("ALTER TYPE state ADD VALUE IF NOT EXISTS 'lost'")
    with op.batch_alter_table("event") as batch:
        batch.alter_column("tags", type_=sa.ARRAY(sa.String(40)), existing_nullable=False)
        batch.create_check_constraint(op.f("ck_event_tags"), "cardinality(tags) < 10")
    op.create_table_comment("event", "what happened")
    op.rename_table("event", "happening")
    op.rename_table("happening", "event")
    op.drop_constraint("ck_account_balance", "account")
    op.create_check_constraint(op.f("ck_account_balance"), "account", "balance >= 0", postgresql_not_valid=True)
    op.execute("ALTER TABLE account VALIDATE CONSTRAINT ck_account_balance")
    op.add_column("account", sa.Column("twice", sa.BigInteger, sa.Computed("id * 2", persisted=True)))
    op.add_column("account", sa.Column("home", sa.CHAR(2), server_default="tv"))
    op.execute("INSERT INTO country VALUES ('tv', 'Tuvalu') ON CONFLICT DO NOTHING")
    op.create_foreign_key("fk_account_home", "account", "country", ["home"], ["code"], ondelete="SET DEFAULT")
    op.create_unique_constraint("uq_account_mail", "account", ["tenant_id", "mail", "id"], deferrable=True)
    bind = op.get_bind()
    for tenant, count in bind.execute(sa.text("SELECT tenant_id, count(*) FROM event GROUP BY 1 ORDER BY 1")).all():
        bind.execute(sa.text("UPDATE tenant SET name = name || :n WHERE id = :t"), {"n": f" ({count})", "t": tenant})


def downgrade():
    op.drop_constraint("uq_account_mail", "account")
    op.drop_constraint("fk_account_home", "account", type_="foreignkey")
    op.drop_column("account", "home")
    op.drop_column("account", "twice")
    op.drop_table_comment("event")
    op.drop_constraint("ck_event_tags", "event")
    op.alter_column("event", "tags", type_=sa.ARRAY(sa.Text), existing_nullable=False)
    op.drop_index("ix_event_account", "event")
    op.drop_index("ix_account_short_name", "account")
    op.drop_column("account", "short_name")
