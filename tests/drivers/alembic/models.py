"""Tenants with accounts and events, as of the first two revisions; with MODELS=newer as they are later."""

import os
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, ENUM, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NEWER = os.environ.get("MODELS") == "newer"
STATES = ["new", "paid", "closed"]


def engine(**options):
    return sa.create_engine("postgresql+psycopg://", **options)


class Base(DeclarativeBase):
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Country(Base):
    __tablename__ = "country"
    code: Mapped[str] = mapped_column(sa.CHAR(2), primary_key=True)
    name: Mapped[str] = mapped_column(sa.Text, comment="in English")


class Tenant(Base):
    __tablename__ = "tenant"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(always=False), primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(60), unique=False)
    country: Mapped[str] = mapped_column(sa.ForeignKey("country.code"))
    made: Mapped[Any] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())


class Account(Base):
    __tablename__ = "account"
    tenant_id: Mapped[int] = mapped_column(sa.ForeignKey("tenant.id"), primary_key=True)
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    mail: Mapped[str] = mapped_column(sa.Text)
    balance: Mapped[Decimal] = mapped_column(sa.Numeric(20 if NEWER else 12, 2), server_default="0")
    state: Mapped[str] = mapped_column(ENUM(*STATES, name="state"), server_default="new")
    __table_args__ = (
        sa.UniqueConstraint("tenant_id", "mail"),
        sa.CheckConstraint("balance >= 0", name="balance"),
    )


class Event(Base):
    __tablename__ = "event"
    tenant_id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Sequence("event_id"), primary_key=True)
    account: Mapped[int | None] = mapped_column(sa.BigInteger)
    body: Mapped[Any] = mapped_column(JSONB, server_default="{}")
    tags: Mapped[list[str]] = mapped_column(ARRAY(sa.Text), server_default="{}")
    if NEWER:
        seen: Mapped[bool] = mapped_column(server_default=sa.false(), nullable=False)
        note: Mapped[str | None] = mapped_column(sa.String(200))
    __table_args__ = (
        sa.ForeignKeyConstraint(["tenant_id", "account"], ["account.tenant_id", "account.id"], ondelete="CASCADE"),
        sa.Index("ix_event_body", "body", postgresql_using="gin"),
    ) + ((sa.Index("ix_event_unseen", "tenant_id", "id", postgresql_where=sa.text("NOT seen")),) if NEWER else ())


if NEWER:

    class Invoice(Base):
        __tablename__ = "invoice"
        tenant_id: Mapped[int] = mapped_column(sa.ForeignKey("tenant.id"), primary_key=True)
        number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
        total: Mapped[Decimal] = mapped_column(sa.Numeric(12, 2))
