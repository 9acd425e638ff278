"""Facts behind `doctor` and the tier on MongoDB: replica set, members, version, encryption."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from solocron.errors import StoreError, StoreRefused
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.mongodb.link import MongoLink

__all__ = ["MongoFacts", "ask_facts", "capabilities_of", "checks_of"]

_OLDEST = (4, 4)
_LIFETIME = "transactionLifetimeLimitSeconds"
_LONG = 10
"""Seconds for which a dead node's transaction may hold its keys without a word."""


@dataclass(frozen=True, slots=True)
class MongoFacts:
    """State that the primary reports of its replica set."""

    version: str
    members: int
    arbiters: int
    sharded: bool
    lingering: int | None = None
    """Seconds for which the server keeps a transaction whose client is gone; None if this user may not ask."""


def ask_facts(link: MongoLink) -> MongoFacts:
    """Ask the primary; refuse a server on which nothing can work."""
    hello = link.hello()
    sharded = hello.get("msg") == "isdbgrid"
    if not sharded and not hello.get("setName"):
        raise StoreRefused(
            f"{link.url} is a standalone server, which has no transactions; nothing was written. Start it with "
            "--replSet and run rs.initiate(): a replica set of one is enough to try it, three members to rely on it."
        )
    version = str(link.read(lambda: link.client.server_info())["version"])
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST:
        raise StoreRefused(
            f"{link.url} is MongoDB {version}, and 4.4 is the oldest that works; nothing was written. Upgrade it."
        )
    return MongoFacts(
        version=version,
        members=len(hello.get("hosts", ())),
        arbiters=len(hello.get("arbiters", ())),
        sharded=sharded,
        lingering=_lingering(link),
    )


def _lingering(link: MongoLink) -> int | None:
    try:
        told = link.read(lambda: link.client.admin.command({"getParameter": 1, _LIFETIME: 1}))
    except StoreError:
        return None
    return int(told[_LIFETIME])


def capabilities_of(facts: MongoFacts | None) -> Capabilities:
    """Return the tier, from what the servers are."""
    if facts is None:
        return Capabilities(
            tier=Tier.C, why="not opened yet, so nothing is known of it", notifies=True, clock_within=2_000
        )
    if facts.sharded:
        why = "a sharded cluster, on which Solocron was never tried"
        return Capabilities(tier=Tier.C, why=why, notifies=True, clock_within=2_000)
    why = "a commit is on the disks of a majority before the reply, and every key that it checks is written"
    return Capabilities(tier=Tier.A, why=why, notifies=True, clock_within=2_000)


def checks_of(facts: MongoFacts, link: MongoLink) -> Iterator[Check]:
    """Yield the lines of `doctor`."""
    found = capabilities_of(facts)
    weak = found.tier is Tier.C
    detail = f"MongoDB {facts.version}: {found.why}"
    yield Check("server", "WARN" if weak else "OK", detail, "name a replica set" if weak else None)
    voting = facts.members + facts.arbiters
    if voting < 3:
        yield Check("members", "WARN", f"{voting}: one that dies takes the store away", "run three members")
    elif facts.arbiters and facts.members < 3:
        told = f"{facts.members} with data and an arbiter: with one of them away, no majority can write"
        yield Check("members", "WARN", told, "replace the arbiter by a member with data")
    elif silent := link.silent_members():
        told = f"{', '.join(silent)} of {voting} cannot be reached from here: with a majority away nothing is written"
        yield Check("members", "WARN", told, "bring it up, or let this machine reach it")
    elif not facts.sharded:
        yield Check("members", "OK", f"{voting} of the replica set, and each can be reached")
    yield _transactions(facts)
    if not link.address.encrypts and not link.address.is_local:
        yield Check(
            "encryption", "WARN", "off: documents and passwords cross the network as they are", "write ?tls=true"
        )


def _transactions(facts: MongoFacts) -> Check:
    """A node that is killed between the writes of a commit and its end leaves their keys locked for that long."""
    if facts.lingering is None:
        return Check("transactions", "OK", f"{_LIFETIME} cannot be seen by this user; 60 by default")
    if facts.lingering <= _LONG:
        return Check("transactions", "OK", f"ended after {facts.lingering} s if their client is gone")
    detail = f"a node that is killed inside a commit may keep its jobs from being taken over for {facts.lingering} s"
    return Check("transactions", "WARN", detail, f"db.adminCommand({{setParameter: 1, {_LIFETIME}: 5}}) on each member")
