"""The application's own tables, in the database that is the store too."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sqlalchemy import Engine, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

URL = os.environ.get("DATABASE_URL", "sqlite:///invoices.db")


class Base(DeclarativeBase):
    """The tables of this application."""


class Invoice(Base):
    """One invoice of a tenant, for one slot."""

    __tablename__ = "invoices"
    id: Mapped[int] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    slot: Mapped[str]
    key: Mapped[str]


class Receipt(Base):
    """A receipt that was sent; two with one key would be a bug."""

    __tablename__ = "receipts"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str]


_engine: list[Engine] = []


def engine() -> Engine:
    """Return the engine of this process, made at its first use: a fork must not inherit one."""
    if not _engine:
        scheme, rest = URL.split("://", 1)
        made = create_engine(f"{'postgresql+psycopg' if scheme == 'postgresql' else scheme}://{rest}")
        Base.metadata.create_all(made)
        _engine.append(made)
    return _engine[0]


def get_db() -> Iterator[Session]:
    """Give a session to a handler (`Depends`) or to a job (`given`); it is committed if that ends well."""
    with Session(engine()) as db, db.begin():
        yield db


def invoices(db: Session) -> list[tuple[str, str]]:
    """Return tenant and slot of every invoice."""
    return [(one.tenant, one.slot) for one in db.scalars(select(Invoice).order_by(Invoice.id))]


def receipts(db: Session) -> list[str]:
    """Return the key of every receipt that was sent."""
    return list(db.scalars(select(Receipt.key).order_by(Receipt.id)))
