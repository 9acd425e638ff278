"""`solocron restored`: nothing before now runs again."""

from __future__ import annotations

from typing import Any

import pytest

from solocron.client import Client
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.stores.contract import Applied, Gate, Result, Verdict
from solocron.stores.memory import MemoryStore
from tests.unit.cli.kit import Cli, Shop


def test_restored_repeats_what_others_got_in_the_way_of(shop: Shop) -> None:
    class Crowded(MemoryStore):
        turns = 0

        def update(self, which: Any, change: Any, *, session: str | None = None, gate: Gate | None = None) -> Applied:
            if which.kind is Kind.NAMESPACE:
                return super().update(which, change)
            Crowded.turns += 1
            if Crowded.turns <= 2:
                return Applied(results=tuple(Result(name, Verdict.CONTENDED) for name in which.names), now=0)
            return super().update(which, change, session=session, gate=gate)

    client = Client(Crowded(shop.url.removeprefix("memory://")))
    assert client.restored() == 3
    assert Crowded.turns == 3
    Crowded.turns = -100
    with pytest.raises(StoreError, match="3 jobs could not be moved to now"):
        client.restored()


def test_restored_lets_nothing_before_now_run_again(cli: Cli, shop: Shop) -> None:
    shop.later(5 * 3600)
    assert cli("restored", "--store", shop.url, "--json").json == {"jobs": 3}
    assert cli("restored", "--store", shop.url).out.startswith("3 jobs moved to now")
    shop.tick()
    (found,) = cli("runs", "invoices", "--store", shop.url, "--json").json
    assert (found["status"], found["count"]) == ("skipped", 5)
    assert found["reason"] == "the store was restored from a backup"
