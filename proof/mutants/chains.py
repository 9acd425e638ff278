"""Bugs of the commit chain: numbers that were deleted, replies that were lost, roots, and listings that are behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.stores.swap.chain import commits, roots
from solocron.stores.swap.chain.commits import ChainCommits, Wanted
from solocron.stores.swap.chain.head import ChainHead
from solocron.stores.swap.chain.roots import Roots
from solocron.stores.swap.chain.state import ChainState
from solocron.stores.swap.chain.text import ChainCommit, Entries, number_of
from solocron.stores.swap.chain.yielding import Yielding
from solocron.stores.swap.key_store import Lost
from solocron.testing.simulation.kernel import SimTurns
from tests.stores.swap.chain import test_chain, test_sharing
from tests.stores.swap.chain.test_sharing import Town
from tests.stores.swap.chain.world import ChainWorld

__all__ = ["MUTANTS"]


def _believes_every_creation(bites: Bites) -> Patches:
    def believe(self: ChainCommits, state: ChainState, number: int, since: float) -> None:
        bites(self._head.boot() - since > self._head.pace.trusted)

    return [(ChainCommits, "_believe", believe)]


def _trusts_forever(bites: Bites) -> Patches:
    def trusted(self: ChainHead, state: ChainState, number: int, seen: float) -> float:
        bites(self.boot() - seen > self.pace.trusted)
        return seen

    return [(ChainHead, "trusted", trusted)]


def _own_time_counts(bites: Bites) -> Patches:
    def releases(self: Roots, number: int) -> bool:
        root = self.get(number)
        old = root is not None and self._objects.now() - root.made_at >= self._pace.kept * SECOND
        bites(old)
        return old

    return [(Roots, "_releases", releases)]


def _releases_at_once(bites: Bites) -> Patches:
    def releases(self: Roots, number: int) -> bool:
        bites()
        return self.get(number) is not None

    return [(Roots, "_releases", releases)]


def _believes_the_listing(bites: Bites) -> Patches:
    def newest(self: Roots) -> int:
        bites()
        return max(map(number_of, self._objects.names(f"{self._folder}r/", 1_000)), default=0)

    return [(Roots, "newest", newest)]


def _forgets_its_token(bites: Bites) -> Patches:
    def token_of(content: bytes) -> str:
        bites()
        return ""

    return [(commits, "token_of", token_of)]


def _calls_the_unknown_undone(bites: Bites) -> Patches:
    real = ChainCommits._sent

    def sent(self: ChainCommits, number: int, content: bytes) -> bytes | None:
        try:
            return real(self, number, content)
        except Lost as lost:
            bites()
            raise StoreUnavailable(str(lost)) from None

    return [(ChainCommits, "_sent", sent)]


def _forgets_deletions(bites: Bites) -> Patches:
    real = roots.entries_to_bytes

    def to_bytes(entries: Entries, most: int) -> Any:
        kept = {key: entry for key, entry in entries.items() if entry[0] is not None}
        bites(len(kept) < len(entries))
        return real(kept, most)

    return [(roots, "entries_to_bytes", to_bytes)]


def _makes_a_root_of_its_own_commits(bites: Bites) -> Patches:
    real = ChainState.apply

    def apply(self: ChainState, number: int, commit: ChainCommit) -> bool:
        if number == self.number + 1 and number % 2:
            bites()
            applied = real(self, number, commit)
            for delta in self.deltas.values():
                for key in commit.writes:
                    delta.pop(key, None)
            return applied
        return real(self, number, commit)

    return [(ChainState, "apply", apply)]


def _stale_without_a_look(bites: Bites) -> Patches:
    real = ChainHead.look

    def look(self: ChainHead) -> ChainState:
        state = self.state
        if state is None:
            return real(self)
        bites()
        return state

    return [(ChainHead, "look", look)]


def _follows_every_winner(bites: Bites) -> Patches:
    def follow(self: ChainCommits, state: ChainState, number: int, since: float, winner: bytes) -> None:
        bites(self._head.boot() - since > self._head.pace.trusted)
        self._head.arrived(state, number + 1, winner)

    return [(ChainCommits, "_follow", follow)]


def _merges_what_writes_one_key(bites: Bites) -> Patches:
    real = ChainCommits._take

    def take(self: ChainCommits, wanted: Wanted, *, along: bool) -> list[Wanted]:
        batch = real(self, wanted, along=along)
        if batch and along:
            bites(self._waiting)
            for one in self._waiting:
                one.taken = True
            batch, self._waiting = [*batch, *self._waiting], []
        return batch

    return [(ChainCommits, "_take", take)]


def _sends_what_is_in_hand(bites: Bites) -> Patches:
    real = ChainCommits._take

    def take(self: ChainCommits, wanted: Wanted, *, along: bool) -> list[Wanted]:
        bites(wanted.taken)
        return [wanted] if wanted.taken else real(self, wanted, along=along)

    def acquire(self: SimTurns, blocking: bool = True, timeout: float = -1) -> bool:
        return waits(self, blocking, 1.0 if timeout < 0 else timeout)

    waits = SimTurns.acquire
    return [(ChainCommits, "_take", take), (SimTurns, "acquire", acquire)]


def _makes_no_gaps(bites: Bites) -> Patches:
    real = Yielding.gap

    def gap(self: Yielding) -> float:
        bites(real(self))
        return 0.0

    return [(Yielding, "gap", gap)]


def _in_a_town(test: Callable[[Town], None]) -> Callable[[], None]:
    def run() -> None:
        test(Town())

    run.__name__ = test.__name__
    return run


def _in_a_world(test: Callable[[ChainWorld], None]) -> Callable[[], None]:
    def run() -> None:
        test(ChainWorld())

    run.__name__ = test.__name__
    return run


MUTANTS = [
    Mutant(
        "K-12",
        "the creation of a number that was deleted is believed",
        "I1",
        _believes_every_creation,
        Check(
            _in_a_world(test_chain.test_a_client_frozen_in_the_middle_of_a_creation_does_not_believe_its_success),
            by="I1",
        ),
    ),
    Mutant(
        "K-13",
        "a client that slept goes on from its old state",
        "I1",
        _trusts_forever,
        Check(_in_a_world(test_chain.test_a_sleeper_reads_what_happened_meanwhile), by="I1"),
    ),
    Mutant(
        "K-14",
        "the age of a root is counted from the time that its maker wrote into it",
        "I1",
        _own_time_counts,
        Check(
            _in_a_world(test_chain.test_a_root_whose_maker_slept_before_creating_it_releases_nothing_for_an_hour),
            by="I1",
        ),
    ),
    Mutant(
        "K-15",
        "the newest root is the one that a listing shows",
        "I2",
        _believes_the_listing,
        Check(_in_a_world(test_chain.test_a_listing_that_shows_nothing_hides_nothing), by="I2"),
    ),
    Mutant(
        "K-16",
        "a commit whose reply was lost is taken for another client's",
        "I2",
        _forgets_its_token,
        Check(_in_a_world(test_chain.test_a_commit_that_arrived_is_applied_once), by="I2"),
    ),
    Mutant(
        "K-17",
        "a commit whose outcome is not known is told as not made",
        "I2",
        _calls_the_unknown_undone,
        Check(_in_a_world(test_chain.test_while_nothing_can_be_learnt_the_outcome_is_lost), by="I2"),
    ),
    Mutant(
        "K-18",
        "a snapshot forgets what was deleted",
        "I5",
        _forgets_deletions,
        Check(_in_a_world(test_chain.test_what_was_deleted_does_not_come_back_with_a_root), by="I5"),
    ),
    Mutant(
        "K-19",
        "a snapshot leaves out some of the commits before it",
        "I5",
        _makes_a_root_of_its_own_commits,
        Check(_in_a_world(test_chain.test_two_clients_that_make_one_root_make_it_whole), by="I5"),
    ),
    Mutant(
        "K-20",
        "commits are deleted as soon as a root allows it",
        "I1",
        _releases_at_once,
        Check(_in_a_world(test_chain.test_commits_are_kept_for_an_hour_after_the_second_root), by="I1"),
    ),
    Mutant(
        "K-21",
        "a read is answered without a look at the head of the chain",
        "I2",
        _stale_without_a_look,
        Worlds({"chain": 1}, hours=0.005),
    ),
    Mutant(
        "K-22",
        "the commit that a creation lost to is applied although its number was deleted",
        "I1",
        _follows_every_winner,
        Check(
            _in_a_world(test_chain.test_nor_is_it_by_a_client_that_slept_in_its_creation_and_finds_it_there), by="I1"
        ),
    ),
    Mutant(
        "K-23",
        "commits of two threads that write one key are made as one",
        "I2",
        _merges_what_writes_one_key,
        Check(_in_a_town(test_sharing.test_commits_of_one_key_stay_apart), by="I2"),
    ),
    Mutant(
        "K-24",
        "a thread sends its commit although another one has it in hand",
        "I2",
        _sends_what_is_in_hand,
        Check(_in_a_town(test_sharing.test_a_commit_in_hand_is_not_sent_by_its_own_thread_too), by="I2"),
    ),
    Mutant(
        "K-25",
        "the client that made the last commits lets no other one in",
        "I14",
        _makes_no_gaps,
        Check(_in_a_town(test_sharing.test_no_client_keeps_the_others_out), by="I14"),
    ),
]
