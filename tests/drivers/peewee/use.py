"""Reads and writes by the models, and prints what comes of it."""

from datetime import UTC, datetime
from decimal import Decimal

import peewee
from models import NEWER, TABLES, Account, Country, Event, Tenant, database
from peewee import fn
from playhouse.shortcuts import model_to_dict

made = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
database.connect()
before = Tenant.select(fn.coalesce(fn.max(Tenant.id), 0)).scalar()


def refused(what):
    try:
        with database.atomic():
            what.execute()
    except peewee.IntegrityError as error:
        print("refused:", str(error).splitlines()[0])


with database.atomic():
    tenants = [Tenant.create(name=f"tenant {n}", country=["de", "pe"][n % 2], made=made) for n in range(3)]
    for tenant in tenants:
        rows = [(tenant, n, f"{n}@{tenant.name}", Decimal(n) / 4) for n in range(1, 6)]
        Account.insert_many(rows, [Account.tenant, Account.id, Account.mail, Account.balance]).execute()
        Event.bulk_create(
            [
                Event(tenant=tenant, id=tenant.id * 1000 + n, account_id=1 + n % 5, weight=1 + n % 4, body={"n": n})
                for n in range(20)
            ],
            batch_size=7,
        )
print("tenants", [tenant.id - before for tenant in tenants])
one = Event.insert(tenant=tenants[0], tags=["a", "é"], body={"deep": {"n": 1}}).returning(Event.weight, Event.tags)
print("one", [(row.weight, row.tags) for row in one.execute()])

query = (
    Account.select(Country.name, Account.id, fn.count(Event.id).alias("events"), fn.sum(Account.balance).alias("all"))
    .join(Tenant)
    .join(Country)
    .join_from(Account, Event, on=(Event.tenant == Account.tenant) & (Event.account_id == Account.id))
    .group_by(Country.name, Account.id)
    .having(fn.count(Event.id) > 2)
    .order_by(Country.name, Account.id)
)
for row in query.tuples():
    print(*row)

fresh = Account.insert(tenant=tenants[0], id=1, mail="1@other", balance=7)
fresh.on_conflict(
    conflict_target=[Account.tenant, Account.id],
    preserve=[Account.mail],
    update={Account.balance: Account.balance + peewee.EXCLUDED.balance},
).execute()
fresh.on_conflict_ignore().execute()
print("upsert", Account.get_by_id((tenants[0].id, 1)).balance)
print("paid", Account.update(state="paid").where(Account.id > 3).execute())
print("gone", Event.delete().where((Event.weight > 3) & (Event.tenant == tenants[1])).execute())
for what in Event.body["n"].cast("int") > 15, Event.body.contains({"n": 3}), Event.tags.contains("a"):
    print("json", Event.select().where(what).count())
print(*Account.get_or_create(tenant=tenants[0], id=8, defaults={"mail": "8"})[1:], end=" ")
print(*Account.get_or_create(tenant=tenants[0], id=8, defaults={"mail": "8"})[1:])

account = Account.get(tenant=tenants[2], id=4)
account.balance += 1
print("saved", account.save(), account.delete_instance() if NEWER else None)
for n, tenant in enumerate(tenants):
    tenant.name += f" of {n}"
print("bulk", Tenant.bulk_update(tenants, [Tenant.name], batch_size=2))

rank = fn.rank().over(partition_by=[Account.tenant], order_by=[Account.balance.desc(), Account.id]).alias("rank")
ranked = Account.select(Account.tenant, Account.id, rank)
best = peewee.Select([ranked], [ranked.c.tenant_id - before, ranked.c.id]).where(ranked.c.rank == 1)
print("best", sorted(best.bind(database).tuples()))
heavy = Event.select(Event.tenant, fn.sum(Event.weight).alias("sum")).group_by(Event.tenant).cte("heavy")
with_heavy = Tenant.select(Tenant.name, heavy.c.sum).join(heavy, on=heavy.c.tenant_id == Tenant.id).with_cte(heavy)
print("cte", with_heavy.order_by(Tenant.id.desc(), heavy.c.sum).limit(3).tuples()[:])
for tenant in peewee.prefetch(Tenant.select().order_by(Tenant.id), Account.select().order_by(Account.id))[-2:]:
    print("prefetch", tenant.name, [a.id for a in tenant.accounts])
print("both", sorted({n for n, in (Country.select(Country.name) | Tenant.select(Tenant.name)).tuples()}))
print("row", sorted(model_to_dict(Tenant.get_by_id(tenants[2].id), recurse=False, exclude=[Tenant.id]).items()))
print("locked", len(Account.select().where(Account.tenant == tenants[0]).for_update()))
with database.atomic():
    print("read by a cursor", sum(1 for _ in peewee_rows) if (peewee_rows := Event.select().iterator()) else None)

with database.atomic() as transaction:
    Tenant.update(name="x").execute()
    with database.atomic() as savepoint:
        Event.delete().execute()
        savepoint.rollback()
    print("kept", Event.select().count(), end=" ")
    transaction.rollback()
print(Tenant.select().where(Tenant.name == "x").count())

refused(Account.insert(tenant=tenants[0], id=1, mail="x"))
refused(Account.insert(tenant=tenants[0], id=9, mail="2@tenant 0"))
refused(Account.insert(tenant=tenants[0], id=9, mail="x", balance=-1))
refused(Account.insert(tenant=0, id=9, mail="x"))
refused(Tenant.insert(name="x", country="xx"))
refused(Country.delete().where(Country.code == "de"))
if NEWER:
    Invoice = TABLES[-1]
    Invoice.insert_many([(tenant, n, n) for tenant in tenants for n in range(3)]).execute()
    print("invoices", [(t.name, t.invoices.count()) for t in tenants], Event.update(remark="é").execute())
    refused(Event.update(weight=0))
