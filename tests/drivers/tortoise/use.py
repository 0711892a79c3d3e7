"""Reads and writes by the models, and prints what comes of it."""

import sys
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import models
from models import NEWER, Account, Country, Event, Feature, State, Tenant
from settings import TORTOISE_ORM
from tortoise import Tortoise, connections, run_async
from tortoise.exceptions import BaseORMException
from tortoise.expressions import F, Q, Subquery
from tortoise.functions import Count, Lower, Sum
from tortoise.transactions import in_transaction

made = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)


async def refused(what):
    try:
        async with in_transaction():
            await what
    except BaseORMException as error:
        print("refused:", type(error).__name__, str(error).splitlines()[0])


async def write(before):
    tenants = [await Tenant.create(name=f"tenant {n}", country_id=["de", "pe"][n % 2], made=made) for n in range(3)]
    print("tenants", [tenant.id - before for tenant in tenants])
    for tenant in tenants:
        await tenant.features.add(*await Feature.all().order_by("name"))
        await Account.bulk_create(
            [Account(tenant=tenant, mail=f"{n}@{tenant.name}", balance=Decimal(n) / 4) for n in range(1, 6)], 2
        )
        accounts = await Account.filter(tenant=tenant).order_by("mail")
        await Event.bulk_create(
            Event(tenant=tenant, account=accounts[n % 5], body={"n": n, "of": [None]}, tags=["a", "é"][: n % 3])
            for n in range(20)
        )
    fresh = [Account(tenant=tenants[0], mail=f"{n}@tenant 0", balance=n) for n in range(4, 8)]
    await Account.bulk_create(fresh, on_conflict=("tenant_id", "mail"), update_fields=("balance",))
    await Account.bulk_create(fresh, ignore_conflicts=True)
    print("upsert", await Account.filter(tenant=tenants[0]).order_by("mail").values_list("mail", "balance"))
    print("paid", await Account.filter(balance__gte=1).update(state=State.PAID, balance=F("balance") + 1))
    print("gone", await Event.filter(tenant=tenants[1], body__filter={"n__gt": 15}).delete())
    few = await Account.filter(tenant=tenants[1]).order_by("mail").limit(3)
    for n, account in enumerate(few):
        account.balance = Decimal(n)
    print("bulk", await Account.bulk_update(few, ["balance"]))
    for _ in range(2):
        account, fresh = await Account.get_or_create(tenant=tenants[2], mail="9", defaults={"balance": 9})
        print("made", fresh, account.balance)
    account.state = State.CLOSED
    await account.save(update_fields=["state"])
    await account.refresh_from_db()
    print("saved", account.state)
    await account.delete()
    await tenants[2].features.remove(await Feature.get(name="red"))
    return tenants


async def read(tenants):
    query = Account.filter(tenant__country__name__in=["Germany", "Perú"], events__isnull=False)
    query = query.annotate(count=Count("events"), lower=Lower("tenant__country__name")).group_by("lower", "mail")
    for row in await query.order_by("lower", "mail").limit(7).values_list("lower", "mail", "count"):
        print(*row)
    totals = Tenant.annotate(all=Sum("accounts__balance", _filter=Q(accounts__state="paid"))).order_by("id")
    print("totals", (await totals.values_list("name", "all"))[-3:])
    print("json", await Event.filter(body__contains={"n": 3}).count(), await Event.filter(tags__contains=["é"]).count())
    richest = Account.filter(balance__gt=3).values("tenant_id")
    print("rich", await Tenant.filter(id__in=Subquery(richest)).count())
    last = await Tenant.filter(id=tenants[2].id).prefetch_related("accounts", "features", "country").get()
    print(last.name, last.country.name, len(last.accounts), sorted(f.name for f in last.features), last.made == made)
    print("by feature", await Feature.annotate(n=Count("tenants")).order_by("name").values_list("name", "n"))
    print("selected", await Event.filter(tenant=last).select_related("account").order_by("id").first().values("body"))
    print("some", await Account.exists(mail="nobody"), len(await Account.in_bulk([a.id for a in last.accounts], "id")))
    print("raw", len(await Account.raw("SELECT * FROM account WHERE balance > 1")))
    async with in_transaction():
        print("locked", len(await Account.filter(tenant=last).select_for_update(skip_locked=True)))
    try:
        async with in_transaction() as connection:
            await Tenant.all().using_db(connection).update(name="x")
            async with in_transaction():
                await Event.filter(tenant=last).delete()
            print("inside", await Event.filter(tenant=last).count(), await Tenant.filter(name="x").count() > 2)
            raise KeyError("nobody")
    except KeyError:
        print("rolled back", await Event.filter(tenant=last).count(), await Tenant.filter(name="x").count())


async def use():
    await Tortoise.init(config=TORTOISE_ORM)
    rows = await connections.get("default").execute_query_dict("SELECT coalesce(max(id), 0) AS last FROM tenant")
    tenants = await write(rows[0]["last"])
    await read(tenants)
    await refused(Account.create(tenant=tenants[0], mail="1@tenant 0"))
    await refused(Account.create(tenant_id=0, mail="x"))
    await refused(Event.create(tenant=tenants[0], account_id=0))
    await refused(Tenant.create(name="x", country_id="xx"))
    await refused(Country.filter(code="de").delete())
    print("with what belongs to it", await Tenant.filter(id=tenants[1].id).delete(), end=" ")
    print(await Account.filter(tenant_id=tenants[1].id).count(), await Event.filter(tenant_id=tenants[1].id).count())
    del tenants[1]
    if NEWER:
        await Event.filter(tenant=tenants[0]).update(seen=True, remark="é")
        print("seen", await Event.filter(seen=True, remark__icontains="É").count())
        print("home", await Account.filter(tenant=tenants[0]).update(home_id="tv", nick=None))
        await models.Invoice.bulk_create(
            models.Invoice(id=UUID(int=tenant.id * 10 + n), tenant=tenant, number=n, total=n)
            for tenant in tenants
            for n in range(3)
        )
        query = Tenant.annotate(n=Sum("invoices__number")).order_by("-id").limit(3)
        print("invoices", await query.values_list("name", "n"))
        await refused(Account.create(tenant=tenants[0], mail="x", balance=-1))


async def save():
    """Whole rows, with the tenant that they have."""
    await Tortoise.init(config=TORTOISE_ORM)
    try:
        async with in_transaction():
            tenant = await Tenant.all().order_by("id").first()
            tenant.name = "saved"
            await tenant.save()
            event = await Event.filter(tenant=tenant).order_by("id").first()
            event.body = {"saved": True}
            await event.save()
            account, _ = await Account.update_or_create({"balance": 10}, tenant=tenant, mail="1@tenant 0")
            await account.refresh_from_db()
            print("saved", tenant.name, event.body, account.balance)
            raise KeyError("nobody")
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])


run_async(save() if sys.argv[1:] == ["save"] else use())
