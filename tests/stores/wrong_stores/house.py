"""Wrong about poison, time, news and the house."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from solocron.clock import MILLISECOND, SECOND
from solocron.errors import StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.run import Record
from solocron.stores.contract import Applied, Blocked, ChangeFn, Check, Doc, Due, Gate, HeldBy, Verdict, Which
from solocron.stores.documents import kind_of
from solocron.stores.drafts import Draft
from solocron.stores.memory import MemoryStore
from solocron.stores.memory_state import Kept, Space, World
from tests.stores.wrong_stores.registry import a_moment, breaks

# --- poison


@breaks(
    "test_a_change_that_raises_sets_only_its_document_aside",
    "test_what_cannot_be_written_as_json_sets_only_its_document_aside",
    "test_an_unreadable_document_is_set_aside_alone",
    "test_a_change_that_raises_for_a_missing_document_disturbs_nobody",
)
class BlocksTheBatch(MemoryStore):
    """One bad document refuses them all."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        with self._locked("savepoint") as space:
            docs = {kind: dict(of_kind) for kind, of_kind in space.docs.items()}
            log = dict(space.log)
        applied = super().update(which, change, session=session, gate=gate)
        if not any(result.verdict is Verdict.BLOCKED for result in applied.results):
            return applied
        with self._locked("rollback") as space:
            space.docs, space.log = docs, log
        return replace(applied, results=tuple(replace(each, verdict=Verdict.BLOCKED) for each in applied.results))


@breaks("test_an_unreadable_document_is_set_aside_alone")
class FailsToRead(MemoryStore):
    """One unreadable document, and nothing can be listed any more."""

    def read(self, which: Which) -> tuple[Doc, ...]:
        with self._locked("select") as space:
            found = self._select(space, which, self.world.now())
        return tuple(self.document(kind_of(which), kept.row) for kept in found.values() if kept)


@breaks("test_what_is_set_aside_is_not_due_until_its_time_is_over")
class KeepsPoisonDue(MemoryStore):
    """What is set aside heads the next batch again."""

    def _ready_at(self, space: Space, kept: Kept) -> int:
        return kept.due_at or 0


class _SetsAside(MemoryStore):
    def put_aside(self, aside: Blocked) -> None:
        super().put_aside(self.instead(aside, self.clock()))

    def instead(self, aside: Blocked, now: int) -> Blocked:
        return aside


@breaks("test_what_is_set_aside_is_not_due_until_its_time_is_over")
class SetsAsideForEver(_SetsAside):
    """What failed once is never tried again, whatever the clock says."""

    def instead(self, aside: Blocked, now: int) -> Blocked:
        return replace(aside, until=now + 10 * SECOND)

    def _selects(self, space: Space, which: Which, name: str, now: int) -> bool:
        hidden = isinstance(which, Due) and (Kind.JOB, name) in space.aside
        return not hidden and super()._selects(space, which, name, now)


@breaks("test_each_time_it_is_set_aside_for_longer")
class NeverLearns(_SetsAside):
    """The same time out for the hundredth failure as for the first."""

    def instead(self, aside: Blocked, now: int) -> Blocked:
        return replace(aside, until=now + 10 * SECOND)


@breaks("test_a_change_that_raises_sets_only_its_document_aside")
class TellsNobody(MemoryStore):
    """Set aside without a word."""

    def blocked(self) -> Sequence[Blocked]:
        return []


@breaks("test_unblocking_lets_it_take_part_again")
class UnblocksNothing(MemoryStore):
    """Says yes and does nothing."""

    def unblock(self, kind: Kind, name: str) -> bool:
        return True


@breaks("test_a_document_that_is_written_again_takes_part_again")
class KeepsTheCuredAside(MemoryStore):
    """A new definition does not help."""

    def _write(self, space: Space, draft: Draft) -> tuple[Record, ...]:
        aside = space.aside.get((draft.kind, draft.name))
        firsts = super()._write(space, draft)
        if aside:
            space.aside[draft.kind, draft.name] = aside
        return firsts


@breaks("test_what_is_set_aside_can_still_be_named_and_held")
class HidesWhatIsAside(MemoryStore):
    """A sweep passes over a document that was set aside: its hold is never ended."""

    def _selects(self, space: Space, which: Which, name: str, now: int) -> bool:
        hidden = isinstance(which, HeldBy) and (which.kind, name) in space.aside
        return not hidden and super()._selects(space, which, name, now)


@breaks("test_an_interrupt_is_not_the_fault_of_a_document")
class SwallowsInterrupts(MemoryStore):
    """Control-C sets a job aside."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        def guarded(doc: Any, now: int) -> Change | None:
            try:
                return change(doc, now)
            except BaseException as error:
                raise ValueError(repr(error)) from error

        return super().update(which, guarded, session=session, gate=gate)


# --- time and news


@breaks("test_the_clock_counts_microseconds_and_never_goes_back", "test_a_change_is_told_the_time_of_the_store")
class HasItsOwnClock(MemoryStore):
    """Every client is a second behind the one before: a replica's clock decides."""

    def __init__(self, name: str = "", *, namespace: str = "default", world: World | None = None) -> None:
        super().__init__(name, namespace=namespace, world=world)
        self._lag = self.world.versions = self.world.versions + 1

    def clock(self) -> int:
        return super().clock() - self._lag * SECOND


@breaks("test_a_change_is_told_the_time_of_the_store")
class TellsAnOldTime(MemoryStore):
    """Its time is a second behind what its clock says."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        return super().update(which, lambda doc, now: change(doc, now - SECOND), session=session, gate=gate)


@breaks("test_the_time_of_a_renewal_is_the_one_that_the_store_told_meanwhile")
class TellsWhatItGuessed(MemoryStore):
    """A renewal's answer is the time that it was decided by, which the store had reached long before."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        applied = super().update(which, change, session=session, gate=gate)
        return replace(applied, now=applied.now - MILLISECOND)


@breaks("test_the_time_that_is_told_is_not_older_than_the_document")
class TellsWhenItBegan(MemoryStore):
    """The time of the transaction's begin, though it had to wait for another's commit."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        began = self.world.now()
        return super().update(which, lambda doc, now: change(doc, began), session=session, gate=gate)


@breaks("test_shifting_the_clock_lets_time_pass_both_ways")
class ShiftsForwardOnly(MemoryStore):
    """A shifted clock that cannot be put back."""

    def shift_clock(self, by: int) -> None:
        super().shift_clock(max(by, 0))


@breaks(
    "test_a_signal_wakes_whoever_waits",
    "test_a_signal_that_came_before_the_wait_is_not_lost",
    "test_a_change_that_others_must_know_wakes_them",
)
class NeverWakes(MemoryStore):
    """Sleeps out its time."""

    def wait(self, timeout: float) -> bool:
        return False


@breaks("test_a_quiet_store_lets_its_clients_wait")
class NeverSleeps(MemoryStore):
    """Something happened, always: its clients spin."""

    def wait(self, timeout: float) -> bool:
        return True


@breaks("test_a_signal_that_came_before_the_wait_is_not_lost")
class HearsOnlyWhileWaiting(MemoryStore):
    """A signal between two waits is lost, and the node sleeps over a due job."""

    def wait(self, timeout: float) -> bool:
        with self.world.condition:
            self._seen = self.world.changes - self._own
        return super().wait(timeout)


@breaks("test_a_change_that_others_must_know_wakes_them")
class KeepsNewsToItself(MemoryStore):
    """Only signals wake; a trigger is found a beat later."""

    def _write(self, space: Space, draft: Draft) -> tuple[Record, ...]:
        changes, own = self.world.changes, self._own
        firsts = super()._write(space, draft)
        self.world.changes, self._own = changes, own
        return firsts


# --- the house


@breaks("test_opening_again_changes_nothing", "test_any_number_of_clients_may_open_a_new_world_at_once")
class OpensAnew(MemoryStore):
    """Creates its tables whenever it is opened."""

    def open(self, *, read_only: bool = False) -> None:
        a_moment()
        self.world.spaces.clear()


@breaks("test_a_closed_client_opens_by_itself_and_finds_everything")
class ClosesForGood(MemoryStore):
    """A closed client is of no use any more."""

    closed = False

    def close(self) -> None:
        self.closed = True

    def read(self, which: Which) -> tuple[Doc, ...]:
        if self.closed:
            raise StoreUnavailable("the client is closed; nothing was read. Make a new one.")
        return super().read(which)


@breaks("test_closing_one_client_leaves_the_others_alone", "test_a_closed_client_opens_by_itself_and_finds_everything")
class ClosesTheWorld(MemoryStore):
    """The last one out turns off the light, and so does the first."""

    def close(self) -> None:
        self.world.spaces.clear()


@breaks("test_namespaces_know_nothing_of_each_other")
class LeaksNamespaces(MemoryStore):
    """The namespace is a label, not a wall."""

    @contextmanager
    def _locked(self, statement: str) -> Iterator[Space]:
        with self.world.condition:
            self.statements[statement] += 1
            yield self.world.spaces.setdefault("every", Space())


@breaks("test_statements_are_counted_by_the_client_that_sent_them")
class CountsForAll(MemoryStore):
    """One counter for every client there is."""

    all_statements: ClassVar[Counter[str]] = Counter()

    def __init__(self, name: str = "", *, namespace: str = "default", world: World | None = None) -> None:
        super().__init__(name, namespace=namespace, world=world)
        self.statements = self.all_statements


@breaks("test_it_says_where_it_is_and_what_it_can_be_trusted_with")
class SaysNotWhatToDo(MemoryStore):
    """A warning without a remedy."""

    def checks(self) -> Sequence[Check]:
        return [replace(check, remedy=None) for check in super().checks()]
