"""What is done to the schema: python -m schema create, migrate, back, reflect or drop."""

import sys

import peewee
from models import TABLES, Country, database
from playhouse.migrate import PostgresqlMigrator, migrate
from playhouse.reflection import Introspector

STATES = ("new", "paid", "closed")
change = PostgresqlMigrator(database)


def create():
    if not database.execute_sql("SELECT 1 FROM pg_type WHERE typname = 'state'").fetchall():
        database.execute_sql(f"CREATE TYPE state AS ENUM {STATES}")
    with database.atomic():
        database.create_tables(TABLES)
        if not Country.select().exists():
            Country.insert_many([("de", "Germany"), ("pe", "Perú"), ("tv", "Tuvalu")]).execute()
    print(*database.get_tables())


def migrate_on():
    # As its documents advise, in one transaction.
    with database.atomic():
        migrate(
            change.add_column("account", "nick", peewee.CharField(30, null=True)),
            change.add_column("account", "spare", peewee.IntegerField(default=7)),
            change.add_column("account", "home", peewee.ForeignKeyField(Country, Country.code, null=True)),
        )
        database.execute_sql("UPDATE account SET nick = split_part(mail, '@', 1)")
        migrate(
            change.add_not_null("account", "nick"),
            change.add_column_default("account", "nick", ""),
            change.rename_column("event", "note", "remark"),
            change.alter_column_type("event", "weight", peewee.BigIntegerField()),
            change.add_constraint("event", "event_weight", peewee.Check("weight > 0")),
            change.add_index("account", ("tenant_id", "nick")),
            change.drop_index("event", "event_heavy"),
        )
    # And each by itself.
    migrate(
        change.drop_column("account", "spare"),
        change.add_unique("account", "tenant_id", "nick", "mail"),
        change.rename_table("country", "land"),
        change.rename_table("event", "happening"),
        change.rename_table("land", "country"),
        change.rename_table("happening", "event"),
        change.drop_constraint("event", "event_account"),
        change.drop_not_null("account", "balance"),
        change.add_not_null("account", "balance"),
    )
    database.execute_sql("ALTER TYPE state ADD VALUE 'lost'")
    database.execute_sql("CREATE INDEX CONCURRENTLY event_account ON event (account_id)")
    database.execute_sql("CREATE VIEW heavy AS SELECT tenant_id, id, weight FROM event WHERE weight > 2")


def back():
    database.execute_sql("DROP VIEW heavy")
    with database.atomic():
        migrate(
            change.drop_column("account", "nick"),
            change.drop_column("account", "home"),
            change.drop_constraint("event", "event_weight"),
            change.alter_column_type("event", "weight", peewee.IntegerField(), "weight::int"),
            change.rename_column("event", "remark", "note"),
            change.drop_index("event", "event_account"),
        )
    database.execute_sql("DROP TABLE invoice")


def reflect():
    inspector = Introspector.from_database(database)
    for name, model in sorted(inspector.generate_models().items()):
        print(name, model._meta.primary_key, *(f"{f.column_name}:{f.field_type}" for f in model._meta.sorted_fields))
        for index in database.get_indexes(name):
            print("   ", index.name, index.columns, index.unique, index.sql)
        for key in database.get_foreign_keys(name):
            print("   ", key.column, key.dest_table, key.dest_column)
        print("   ", model.select().count(), "rows")
    print(*database.get_views(), *(sequence for sequence in ("event_id", "no") if database.sequence_exists(sequence)))


def drop():
    database.drop_tables(TABLES)
    database.execute_sql("DROP TYPE state")
    print(*database.get_tables())


with database.connection_context():
    {"create": create, "migrate": migrate_on, "back": back, "reflect": reflect, "drop": drop}[sys.argv[1]]()
