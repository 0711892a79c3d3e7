"""Tenants with accounts and events; with MODELS=newer as an application has them later."""

import os
from enum import StrEnum

from tortoise import Model, fields
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.contrib.postgres.indexes import GinIndex

NEWER = os.environ.get("MODELS") == "newer"


class State(StrEnum):
    NEW = "new"
    PAID = "paid"
    CLOSED = "closed"


class StateField(fields.CharField):
    """Of the database's own type."""

    SQL_TYPE = "state"

    def __init__(self, **options):
        super().__init__(max_length=20, **options)


class Country(Model):
    code = fields.CharField(2, primary_key=True)
    name = fields.CharField(60, description="in English")


class Feature(Model):
    name = fields.CharField(20, primary_key=True)
    if NEWER:
        price = fields.DecimalField(8, 2, default=0, db_default=0)


class Tenant(Model):
    id = fields.BigIntField(primary_key=True)
    name = fields.CharField(60)
    country = fields.ForeignKeyField("models.Country", "tenants", on_delete=fields.RESTRICT)
    features = fields.ManyToManyField("models.Feature", through="tenant_feature", related_name="tenants")
    made = fields.DatetimeField(null=True)


class Account(Model):
    id = fields.BigIntField(primary_key=True)
    tenant = fields.ForeignKeyField("models.Tenant", "accounts")
    mail = fields.CharField(200 if NEWER else 100)
    balance = fields.DecimalField(20 if NEWER else 12, 2, default=0)
    state = StateField(default=State.NEW)
    if NEWER:
        nick = fields.CharField(30, null=True, description="what friends say")
        home = fields.ForeignKeyField("models.Country", "at_home", null=True, on_delete=fields.SET_NULL)

    class Meta:
        unique_together = (("tenant_id", "mail"),) + ((("tenant_id", "nick"),) if NEWER else ())


class Event(Model):
    id = fields.BigIntField(primary_key=True)
    tenant = fields.ForeignKeyField("models.Tenant", "events")
    # The database's key to it has the tenant, too: Tortoise ORM has no keys of several columns.
    account = fields.ForeignKeyField("models.Account", "events", null=True, db_constraint=False)
    body = fields.JSONField(default=dict)
    tags = ArrayField("text", default=list)
    if NEWER:
        remark = fields.TextField(null=True)
        seen = fields.BooleanField(default=False, db_default=False, db_index=True)
    else:
        note = fields.TextField(null=True)
        kind = fields.SmallIntField(default=1, db_default=1)

    class Meta:
        indexes = [GinIndex(fields=("body",))] + ([("tenant_id", "account_id")] if NEWER else [])


if NEWER:

    class Invoice(Model):
        id = fields.UUIDField(primary_key=True)
        tenant = fields.ForeignKeyField("models.Tenant", "invoices")
        number = fields.IntField()
        total = fields.DecimalField(12, 2)
