"""A server that tells whole seconds: a lease is not counted from a time that is a second behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from solocron.clock import MILLISECOND, SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.session import begin, renew
from solocron.stores.swap.memory import MemoryKeys, SharedKeys
from solocron.stores.swap.store import SwapStore
from solocron.testing.conformance import Clients
from solocron.testing.conformance.kit import job, note, put, write
from solocron.testing.faults.victim import MINE


class BluntKeys(MemoryKeys):
    """Its time is behind by nearly a second until it is sharpened."""

    behind = 900 * MILLISECOND

    def now(self) -> int:
        return super().now() - self.behind

    def sharpen(self, within: int) -> None:
        self.behind = min(self.behind, within)


@pytest.fixture
def keys() -> BluntKeys:
    return BluntKeys(SharedKeys())


def test_a_renewal_counts_from_a_time_that_is_near_the_servers(keys: BluntKeys) -> None:
    """A node trusts its lease from before it asked: a second that the store did not count is a second too long."""
    store = SwapStore(keys, lease=timedelta(seconds=3))
    for change in (
        lambda doc, now: begin(doc, MINE, now=now),
        lambda doc, now: renew(doc, now=now),
        lambda doc, now: renew(doc, now=now),
    ):
        keys.behind = 900 * MILLISECOND
        asked = keys.shared.clock()
        (result,) = write(store, Kind.SESSION, "s", change).results
        assert result.doc.expires_at >= asked + MINE.lease - 3 * SECOND // 50  # type: ignore[union-attr]


def test_so_does_a_lock(keys: BluntKeys) -> None:
    store = SwapStore(keys)
    told: list[int] = []

    def take(doc: object, now: int) -> Change:
        told.append(now)
        return Change(note(Kind.LOCK, "l"))

    asked = keys.shared.clock()
    write(store, Kind.LOCK, "l", take)
    assert told[0] >= asked - 100 * MILLISECOND


def test_other_documents_wait_for_nothing(keys: BluntKeys) -> None:
    store = SwapStore(keys)
    put(store, job("j"))
    assert keys.behind == 900 * MILLISECOND


@pytest.mark.parametrize("calls", range(6))
def test_the_suite_shifts_every_client_although_the_second_turns_meanwhile(calls: int) -> None:
    """A clock of whole seconds leaps by one when it turns, which must not look like a store that shifts all at once."""
    shared, left = SharedKeys(), [calls]

    class LeapingKeys(MemoryKeys):
        def ask_time(self) -> str:
            left[0] -= 1
            return super().ask_time()

        def now(self) -> int:
            return super().now() - (SECOND if left[0] >= 0 else 0)

    clients = Clients(lambda namespace="default": SwapStore(LeapingKeys(shared)))
    a, b = clients.new(), clients.new()
    clients.advance(SECOND)
    left[0] = -1
    assert abs(a.clock() - b.clock()) < SECOND // 4
    clients.close()
