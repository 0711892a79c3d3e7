"""Reads and writes by the models, and prints what comes of it."""

from datetime import UTC, datetime
from decimal import Decimal

import sqlalchemy as sa
from models import NEWER, Account, Base, Country, Event, Tenant, engine
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

database = engine()


def refused(what):
    """What the database has against it, as SQLAlchemy tells it."""
    try:
        with Session(database) as session:
            session.execute(what)
    except sa.exc.IntegrityError as error:
        print(type(error.orig).__name__, error.orig.diag.constraint_name)


with Session(database) as session:
    first = (session.scalar(sa.select(sa.func.max(Tenant.id))) or 0) + 1
    made = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
    tenants = [Tenant(name=f"tenant {n}", country=["de", "pe"][n % 2], made=made) for n in range(3)]
    session.add_all(tenants)
    session.flush()
    for tenant in tenants:
        session.add_all(
            Account(tenant_id=tenant.id, id=n, mail=f"{n}@{tenant.name}", balance=Decimal(n) / 4) for n in range(1, 6)
        )
        session.flush()
        session.add_all(
            Event(tenant_id=tenant.id, account=1 + n % 5, body={"n": n}, tags=["a", "é"][: n % 3]) for n in range(20)
        )
    session.commit()
    print("tenants", [tenant.id - first for tenant in tenants])
    query = (
        sa.select(Country.name, Account.id, sa.func.count(), sa.func.sum(Account.balance))
        .join(Tenant, Tenant.country == Country.code)
        .join(Account, Account.tenant_id == Tenant.id)
        .join(Event, (Event.tenant_id == Account.tenant_id) & (Event.account == Account.id))
        .group_by(Country.name, Account.id)
        .order_by(Country.name, Account.id)
    )
    for row in session.execute(query):
        print(*row)
    many = [{"tenant_id": tenants[1].id, "id": n, "mail": f"many {n}"} for n in range(100, 140)]
    print("many", len(session.scalars(sa.insert(Account).returning(Account.state), many).all()))
    upsert = insert(Account).values(tenant_id=tenants[0].id, id=1, mail="1@other", balance=7)
    upsert = upsert.on_conflict_do_update(
        index_elements=["tenant_id", "id"], set_={"balance": Account.balance + upsert.excluded.balance}
    )
    print("upsert", session.scalar(upsert.returning(Account.balance)))
    print("paid", session.execute(sa.update(Account).where(Account.id > 3).values(state="paid")).rowcount)
    print("json", session.scalar(sa.select(sa.func.count()).where(Event.body["n"].as_integer() > 15)))
    print("gone", session.execute(sa.delete(Account).where(Account.id > 120)).rowcount)
    session.commit()
    rank = sa.func.rank().over(order_by=(Account.balance.desc(), Account.tenant_id, Account.id))
    ranked = sa.select(Account.tenant_id, Account.id, rank.label("r")).subquery()
    for row in session.execute(sa.select(ranked).where(ranked.c.r < 4).order_by(ranked.c.r)):
        print("rank", row.tenant_id - first, row.id, row.r)
    tenants[2].name = "other"
    session.get(Account, (tenants[2].id, 2)).state = "closed"
    session.flush()
    with session.begin_nested() as savepoint:
        session.execute(sa.delete(Event).where(Event.tenant_id == tenants[2].id))
        savepoint.rollback()
    print("kept", session.scalar(sa.select(sa.func.count()).where(Event.tenant_id == tenants[2].id)))
    session.rollback()
    print("rolled back", tenants[2].name, session.get(Account, (tenants[2].id, 2)).state)
    last = tenants[0].id

refused(sa.insert(Account).values(tenant_id=last, id=1, mail="x"))
refused(sa.insert(Account).values(tenant_id=last, id=9, mail="2@tenant 0"))
refused(sa.insert(Account).values(tenant_id=last, id=9, mail="x", balance=-1))
refused(sa.insert(Account).values(tenant_id=last, id=9))
refused(sa.insert(Event).values(tenant_id=last, account=77))
refused(sa.insert(Tenant).values(name="x", country="xx"))
refused(sa.delete(Country).where(Country.code == "de"))
if NEWER:
    with Session(database) as session:
        invoice = Base.metadata.tables["invoice"]
        number = (session.scalar(sa.select(sa.func.max(invoice.c.number))) or 0) + 1
        session.execute(sa.insert(invoice), [{"tenant_id": last, "number": number + n, "total": n} for n in range(3)])
        session.execute(sa.update(Event).where(Event.tenant_id == last).values(seen=True))
        session.commit()
        print("unseen", session.scalar(sa.select(sa.func.count()).where(~Event.seen)))
        lonely = Tenant(name="lonely", country="pe", made=made)
        session.add(lonely)
        session.flush()
        session.execute(sa.insert(invoice).values(tenant_id=lonely.id, number=1, total=1))
        session.commit()
        joined = sa.select(Tenant.name, sa.func.sum(invoice.c.total)).join(invoice).group_by(Tenant.name)
        print(*session.execute(joined.order_by(Tenant.name)).all())
        last = lonely.id
    refused(sa.insert(invoice).values(tenant_id=0, number=1, total=1))
    refused(sa.delete(Tenant).where(Tenant.id == last))
