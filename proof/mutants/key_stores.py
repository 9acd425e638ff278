"""Bugs of stores on ordered keys: what the swap family checks in a commit, reads after a lost reply, or packs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.stores.swap import lost, portions
from solocron.stores.swap.calls import KeyCalls
from solocron.stores.swap.key_store import Item
from solocron.stores.swap.layout import is_derived
from solocron.stores.swap.memory import KeyWorld, MemoryKeys, SharedKeys
from solocron.stores.swap.mirror import Mirror
from solocron.stores.swap.server_time import ServerTime
from solocron.stores.swap.store import SwapStore
from solocron.stores.swap.turns import ClaimTurns
from solocron.testing.conformance import Clients, KeyClients, KeyStoreConformance, StoreConformance
from tests.stores.swap import test_lost_replies, test_mirror, test_parcels, test_turns
from tests.unit.stores import test_server_time

__all__ = ["MUTANTS"]


def _unchecked(prefix: str) -> Callable[[Bites], Patches]:
    """Return the bug that no commit checks the keys of a prefix."""

    def make(bites: Bites) -> Patches:
        real = KeyCalls.commit

        def careless(self: KeyCalls, checks: Any, writes: Any, **more: Any) -> Any:
            kept = {key: one for key, one in checks.items() if not key.startswith(prefix)}
            bites(len(kept) < len(checks))
            return real(self, kept, writes, **more)

        return [(KeyCalls, "commit", careless)]

    return make


def _k03(bites: Bites) -> Patches:
    real = portions.changed

    def only_adds(old: Any, new: Any) -> Any:
        writes = real(old, new)
        bites(None in writes.values())
        return {key: value for key, value in writes.items() if value is not None}

    return [(portions, "changed", only_adds)]


def _k11(bites: Bites) -> Patches:
    real = Mirror._drop

    def keeps(self: Mirror, key: str) -> None:
        bites(is_derived(key))
        if not is_derived(key):
            real(self, key)

    return [(Mirror, "_drop", keeps)]


def _k04(bites: Bites) -> Patches:
    real = ServerTime.now

    def upper(self: ServerTime) -> int:
        bites()
        return real(self) + self.width

    return [(ServerTime, "now", upper)]


def _k05(bites: Bites) -> Patches:
    def always(self: ClaimTurns) -> bool:
        bites()
        return True

    return [(ClaimTurns, "are_taken", property(always))]


def _k06(bites: Bites) -> Patches:
    def lets_it_come(calls: KeyCalls, item: Item) -> bool:
        bites()
        return True

    return [(lost, "_call_off", lets_it_come)]


def _k07(bites: Bites) -> Patches:
    real = KeyWorld.commit

    def counts_each_key(self: KeyWorld, checks: Any, writes: Any, *more: Any) -> Any:
        self.revision = max((self.items[key].mark for key in writes if key in self.items), default=0)  # type: ignore[type-var]
        bites()
        return real(self, checks, writes, *more)

    return [(KeyWorld, "commit", counts_each_key)]


def _k08(bites: Bites) -> Patches:
    def nothing(item: Item) -> str:
        bites()
        return ""

    return [(lost, "_token_of", nothing)]


def _on_memory(test: Callable[..., None]) -> Callable[[], None]:
    """Return a test of the store's suite, on the swap family and a fresh memory key store."""

    def run() -> None:
        shared = SharedKeys()
        clients = Clients(lambda namespace="default": SwapStore(MemoryKeys(shared, namespace), namespace=namespace))
        try:
            test(StoreConformance(), clients)
        finally:
            clients.close()

    run.__name__ = test.__name__
    return run


def _of_keys(test: Callable[..., None]) -> Callable[[], None]:
    def run() -> None:
        shared = SharedKeys()
        clients = KeyClients(lambda namespace="default": MemoryKeys(shared, namespace))
        try:
            test(KeyStoreConformance(), clients)
        finally:
            clients.close()

    run.__name__ = test.__name__
    return run


def _cut(test: Callable[..., None]) -> Callable[[], None]:
    def run() -> None:
        keys = test_lost_replies.CutKeys(SharedKeys())
        store = SwapStore(keys, lease=timedelta(seconds=0.3))
        store.open()
        test(keys, store)

    run.__name__ = test.__name__
    return run


def _packed(test: Callable[..., None]) -> Callable[[], None]:
    def run() -> None:
        shared = SharedKeys()
        test(shared, test_parcels.dies_before_unpacking(shared))

    run.__name__ = test.__name__
    return run


MUTANTS = [
    Mutant(
        "K-01",
        "a claim does not check that its session is live",
        "I4",
        _unchecked("live/"),
        Check(_on_memory(StoreConformance.test_no_claim_is_committed_after_the_burial_that_came_in_between), by="I4"),
    ),
    Mutant(
        "K-02",
        "a parcel is unpacked without a check that it is still there",
        "I6",
        _unchecked("parcel/"),
        Check(_packed(test_parcels.test_a_frozen_client_unpacks_nothing_again), by="I6"),
    ),
    Mutant("K-03", "an old index key is not removed", "I5", _k03, Worlds({"keys": 1})),
    Mutant(
        "K-04",
        "the time is the upper end of what the server may have meant",
        "I15",
        _k04,
        Check(test_server_time.test_it_is_never_ahead_of_the_server_and_never_goes_back, (0, 1.0), by="I15"),
    ),
    Mutant(
        "K-05",
        "turns are taken before a race was lost",
        "I13",
        _k05,
        Check(test_turns.test_before_a_race_was_lost_everything_goes_to_the_first, by="I13"),
    ),
    Mutant(
        "K-06",
        "a commit that is late is not called off",
        "I1",
        _k06,
        Check(_cut(test_lost_replies.test_a_late_commit_is_called_off), by="I1"),
    ),
    Mutant(
        "K-07",
        "a mark comes a second time after a deletion",
        "I4",
        _k07,
        Check(_of_keys(KeyStoreConformance.test_no_mark_comes_a_second_time), by="I4"),
    ),
    Mutant(
        "K-08",
        "a commit whose reply was lost is not looked for by its token",
        "I2",
        _k08,
        Check(_cut(test_lost_replies.test_a_commit_that_arrived_is_applied), by="I2"),
    ),
    Mutant(
        "K-09",
        "a claim does not check the document of the namespace",
        "I27",
        _unchecked("d/namespace/"),
        Check(_on_memory(StoreConformance.test_a_pause_in_between_stops_the_claim), by="I27"),
    ),
    Mutant(
        "K-10",
        "a record is written over the first one of its attempt",
        "I6",
        _unchecked("run/"),
        Check(_on_memory(StoreConformance.test_the_first_record_of_an_attempt_stays_and_the_change_stands), by="I6"),
    ),
    Mutant(
        "K-11",
        "a mirror keeps an index key that its document has left",
        "I5",
        _k11,
        Check(test_mirror.test_the_index_follows_the_header_of_a_document, by="I5"),
    ),
]
