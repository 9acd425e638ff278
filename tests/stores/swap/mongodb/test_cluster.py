"""Three members: the primary is killed under claims, and another goes on with everything that was acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from typing import Any

import pytest
from pymongo.errors import PyMongoError

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.session import begin, renew
from solocron.stores.contract import All, Verdict
from solocron.stores.swap.mongodb import MongoStore
from solocron.stores.swap.mongodb.keys import MongoKeys
from solocron.stores.url import parse
from solocron.testing.conformance.kit import everything, get, job, patience, put, take, verdicts, write
from solocron.testing.faults.victim import MINE
from tests.servers import MongoDB

pytestmark = pytest.mark.long
"""The server comes with Wine: `make test-mongodb`."""


class Member(MongoDB):
    """One of several, of which the first makes the replica set once all run."""

    joined = False

    def ask(self) -> None:
        """Count as ready when it replies: none can be a primary before the set is made."""
        with self.client() as client:
            client.admin.command("hello")

    @property
    def leads(self) -> bool:
        with self.client() as client:
            return bool(client.admin.command("hello")["isWritablePrimary"])


@pytest.fixture
def members(mongodb: MongoDB) -> Iterator[list[Member]]:
    members = [Member() for _ in range(3)]
    with ExitStack() as stack:
        for member in members:
            stack.enter_context(member)
        config = members[0].members()
        config["members"] = [{"_id": i, "host": f"127.0.0.1:{one.port}"} for i, one in enumerate(members)]
        with members[0].client() as client:
            client.admin.command("replSetInitiate", config)
        for _ in patience():
            with suppress(PyMongoError):
                if any(one.leads for one in members):
                    break
        yield members


@pytest.mark.invariant("I12: what was recorded stays recorded")
def test_the_death_of_the_primary_inside_a_transaction_costs_no_claim_and_no_session(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = ",".join(f"127.0.0.1:{member.port}" for member in members)
    with closing(MongoStore(parse(f"mongodb://{hosts}/jobs?replicaSet=rs0"), lease=timedelta(seconds=12))) as store:
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(store, *(job(f"j{i:02}", due_at=store.clock() - SECOND) for i in range(30)))
        assert len(take(store, "s", everything(limit=10), session="s")) == 10
        primary = next(member for member in members if member.leads)
        keys = store._keys
        assert isinstance(keys, MongoKeys)
        real = keys._apply

        def deadly(*arguments: Any) -> None:
            real(*arguments)  # everything is sent but the commit
            monkeypatch.undo()
            primary.kill9()

        monkeypatch.setattr(keys, "_apply", deadly)
        for _ in patience():
            with suppress(StoreUnavailable):
                take(store, "s", everything(limit=5), session="s")
                renewed = verdicts(write(store, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now)))
                jobs = store.read(All(Kind.JOB))
                if all(one.active for one in jobs) and renewed == {"s": Verdict.APPLIED}:  # type: ignore[union-attr]
                    break
        assert [one.fence for one in store.read(All(Kind.JOB))] == [1] * 30  # type: ignore[union-attr]
        assert get(store, Kind.SESSION, "s").state == "live"
        told = next(check for check in store.checks() if check.name == "members")
        assert (told.level, f"127.0.0.1:{primary.port} of 3 cannot be reached" in told.detail) == ("WARN", True)
        primary.restart()
        for _ in patience():
            if next(check.level for check in store.checks() if check.name == "members") == "OK":
                break
