"""Tenants with accounts and events; with MODELS=newer as an application has them later."""

import os

import peewee
from peewee import SQL
from playhouse.postgres_ext import ArrayField, BinaryJSONField, DateTimeTZField, IdentityField, PostgresqlExtDatabase

NEWER = os.environ.get("MODELS") == "newer"
database = PostgresqlExtDatabase(
    os.environ["PGDATABASE"],
    host=os.environ["PGHOST"],
    port=int(os.environ["PGPORT"]),
    user=os.environ["PGUSER"],
    prefer_psycopg3=os.environ.get("PEEWEE") == "psycopg3",
)


class StateField(peewee.Field):
    field_type = "state"


class Table(peewee.Model):
    class Meta:
        database = database
        legacy_table_names = False


class Country(Table):
    code = peewee.FixedCharField(2, primary_key=True)
    name = peewee.TextField(index=True)


class Tenant(Table):
    id = IdentityField()
    name = peewee.CharField(60)
    country = peewee.ForeignKeyField(Country, backref="tenants", column_name="country")
    made = DateTimeTZField(constraints=[SQL("DEFAULT now()")])


class Account(Table):
    tenant = peewee.ForeignKeyField(Tenant, backref="accounts", index=False)
    id = peewee.BigIntegerField()
    mail = peewee.TextField()
    balance = peewee.DecimalField(12, 2, default=0, constraints=[peewee.Check("balance >= 0", "account_balance")])
    state = StateField(default="new")
    if NEWER:
        nick = peewee.CharField(30, default="", constraints=[SQL("DEFAULT ''")])
        home = peewee.ForeignKeyField(Country, backref="at_home", column_name="home", null=True)

    class Meta:
        primary_key = peewee.CompositeKey("tenant", "id")
        indexes = ((("tenant", "mail"), True),)


class Event(Table):
    tenant = peewee.ForeignKeyField(Tenant, backref="events", index=False)
    id = peewee.BigIntegerField(sequence="event_id")
    account_id = peewee.BigIntegerField(null=True)
    body = BinaryJSONField(default=dict)
    tags = ArrayField(peewee.TextField, default=list)
    if NEWER:
        remark = peewee.TextField(null=True)
        weight = peewee.BigIntegerField(default=1)
    else:
        note = peewee.TextField(null=True)
        weight = peewee.IntegerField(default=1)

    class Meta:
        primary_key = peewee.CompositeKey("tenant", "id")
        constraints = [
            SQL(
                "CONSTRAINT event_account FOREIGN KEY (tenant_id, account_id) REFERENCES account (tenant_id, id)"
                " ON DELETE CASCADE"
            )
        ]


Event.add_index(Event.tenant, Event.weight.desc(), where=(Event.weight > 1), name="event_heavy")
TABLES = [Country, Tenant, Account, Event]

if NEWER:

    class Invoice(Table):
        tenant = peewee.ForeignKeyField(Tenant, backref="invoices", index=False)
        number = peewee.IntegerField()
        total = peewee.DecimalField(12, 2)

        class Meta:
            primary_key = peewee.CompositeKey("tenant", "number")

    TABLES.append(Invoice)
