"""The whole look: a store that is away is one line, the store's own lines are among them, clocks are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from solocron import Scheduler
from solocron.clock import SECOND
from solocron.doctor import Circumstances, examine, failed, unreachable
from solocron.doctor.fleet import Pace
from solocron.errors import StoreRefused, StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.run import Origin, Record, Status
from solocron.model.documents.session import begin
from solocron.runtime import Threads
from solocron.stores.contract import All, Applied, Capabilities, Check, Gate, Named, Result, Tier, Verdict
from solocron.stores.memory import MemoryStore, World
from tests.unit.doctor.kit import put, session
from tests.unit.model.one_job import OneJob


class Odd(MemoryStore):
    """A memory store that can be made to misbehave."""

    def __init__(self) -> None:
        super().__init__(world=World())
        self.tier = Tier.A
        self.broken: dict[str, Exception] = {}
        self.verdict: Verdict | None = None
        self.lines: Sequence[Check] = ()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(tier=self.tier, why="so it says")

    def _may(self, verb: str) -> None:
        if verb in self.broken:
            raise self.broken[verb]

    def open(self, *, read_only: bool = False) -> None:
        self._may("open")

    def holders(self) -> frozenset[str]:
        self._may("holders")
        return super().holders()

    def update(self, which: Any, change: Any, *, session: str | None = None, gate: Gate | None = None) -> Applied:
        self._may("update")
        if self.verdict is not None:
            return Applied(results=(Result(which.names[0], self.verdict),), now=self.clock())
        return super().update(which, change, session=session, gate=gate)

    def checks(self) -> Sequence[Check]:
        return self.lines


class Skewed(Threads):
    """A machine whose wall clock is wrong, or whose every look at a clock takes long."""

    def __init__(self, *, ahead: float = 0, slow: float = 0) -> None:
        super().__init__()
        self.clock = self
        self._ahead = ahead
        self._slow = slow
        self._looks = 0

    def wall(self) -> int:
        return Threads().clock.wall() + round(self._ahead * SECOND)

    def boot(self) -> float:
        self._looks += 1
        return Threads().clock.boot() + self._looks * self._slow


def lines(store: MemoryStore, runtime: Threads | None = None, **around: Any) -> dict[str, Check]:
    return {check.name: check for check in examine(store, runtime or Threads(), Circumstances(**around), writes=True)}


def test_a_healthy_store_has_no_failure() -> None:
    found = examine(Odd(), Threads(), Circumstances())
    assert {check.level for check in found} == {"OK"}
    assert not failed(found)
    assert "tier A: so it says" in found[0].detail


def test_every_line_has_something_to_do_unless_it_is_fine() -> None:
    store = Odd()
    put(store, session("a", left=-3600, now=store.clock()))
    for check in examine(store, Skewed(ahead=90), Circumstances(store_given=False)):
        assert (check.remedy is None) == (check.level == "OK"), check


def test_a_store_that_is_away_is_one_failure() -> None:
    store = Odd()
    store.broken["open"] = StoreUnavailable("no server responds at db:5432")
    found = examine(store, Threads(), Circumstances())
    assert [check.level for check in found] == ["FAIL"]
    assert "no server responds" in found[0].detail
    assert failed(found)


def test_a_store_that_goes_away_in_the_middle_is_a_failure() -> None:
    store = Odd()
    store.broken["holders"] = StoreUnavailable("gone")
    found = examine(store, Threads(), Circumstances())
    assert (found[-1].level, found[-1].detail) == ("FAIL", "it stopped responding: gone")


def test_a_lease_is_judged_also_without_a_store() -> None:
    found = unreachable("no file", Circumstances(pace=Pace(10 * SECOND, 5 * SECOND)))
    assert [check.name for check in found] == ["store", "given lease"]
    assert [check.level for check in found] == ["FAIL", "FAIL"]


def test_a_store_of_tier_c_is_a_warning() -> None:
    store = Odd()
    store.tier = Tier.C
    assert lines(store)["store"].level == "WARN"


def test_a_slow_store_is_a_warning() -> None:
    found = lines(Odd(), Skewed(slow=0.5))["store"]
    assert found.level == "WARN"
    assert "which is slow" in found.detail


def test_the_stores_own_lines_are_shown_except_its_clock() -> None:
    store = Odd()
    store.lines = [Check("schema", "FAIL", "3/4", "solocron migrate"), Check("clock", "OK", "about right")]
    found = lines(store)
    assert found["schema"].level == "FAIL"
    assert "clock" not in found


@pytest.mark.parametrize(("ahead", "level"), [(0.2, "OK"), (5, "WARN"), (-5, "WARN"), (90, "FAIL"), (-3600, "FAIL")])
def test_the_machines_clock_is_held_against_the_stores(ahead: float, level: str) -> None:
    found = lines(Odd(), Skewed(ahead=ahead))["clock skew"]
    assert found.level == level
    assert ("ahead of" if ahead > 0 else "behind") in found.detail


def test_a_store_that_may_not_be_written_is_a_failure() -> None:
    store = Odd()
    store.broken["update"] = StoreRefused("only reading is allowed")
    found = lines(store)["writing"]
    assert (found.level, found.detail) == ("FAIL", "only reading is allowed")


def test_who_only_looks_writes_nothing_to_try_it() -> None:
    store = Odd()
    store.broken["update"] = StoreRefused("not even to try it")
    found = {check.name: check for check in examine(store, Threads(), Circumstances())}["writing"]
    assert (found.level, found.detail) == ("OK", "not tried: only --repair writes")


def test_a_store_that_does_not_write_is_a_failure() -> None:
    store = Odd()
    store.verdict = Verdict.UNKNOWN
    assert lines(store)["writing"].level == "FAIL"


def test_the_document_written_to_try_it_is_gone_afterwards() -> None:
    store = Odd()
    assert lines(store)["writing"].level == "OK"
    assert store.read(All(Kind.KEY)) == ()


def test_a_store_that_was_not_chosen_is_a_warning_and_in_a_container_a_failure() -> None:
    assert "default store" not in lines(Odd())
    assert lines(Odd(), store_given=False)["default store"].level == "WARN"
    assert lines(Odd(), store_given=False, in_container=True)["default store"].level == "FAIL"


def test_a_file_in_a_container_is_a_warning() -> None:
    assert lines(Odd(), is_file=True, in_container=True)["default store"].level == "WARN"
    assert "default store" not in lines(Odd(), is_file=True)


def test_a_lease_in_question_has_its_line() -> None:
    assert lines(Odd(), pace=Pace(10 * SECOND, 5 * SECOND))["given lease"].level == "FAIL"
    assert "given lease" not in lines(Odd())


def test_sessions_of_the_store_are_looked_at() -> None:
    store = Odd()
    put(store, session("b", left=-60, now=store.clock()))
    assert lines(store)["silent node"].level == "FAIL"
    assert store.read(Named(Kind.SESSION, ("session of b",))) != ()


@pytest.mark.parametrize(
    ("days", "level", "told"),
    [
        (29, "OK", "records are kept for 30d"),
        (32, "OK", "records are kept for 30d"),
        (34, "WARN", "records are kept for 30d, and there are some that are older than 33d"),
        (70, "WARN", "records are kept for 30d, and there are some that are older than 66d"),
    ],
)
def test_records_that_should_have_been_pruned_are_told(days: int, level: str, told: str) -> None:
    store, day = Odd(), 86_400 * SECOND
    at = store.clock() - days * day
    record = Record(
        run="job@1", attempt=1, job="job", key="k", slot=at, origin=Origin.SCHEDULE, status=Status.SUCCEEDED,
        recorded_at=at, finished_at=at,
    )  # fmt: skip
    job = OneJob("1h").job
    store.update(Named(Kind.JOB, (job.name,)), lambda doc, now: Change(job, (record,)))
    assert "history" not in lines(store), "no node has ever been there"
    one = session(name="s", keep=30 * day)
    store.update(Named(Kind.SESSION, ("s",)), lambda doc, now: begin(doc, one, now=now))
    found = lines(store)["history"]
    assert (found.level, found.detail) == (level, told)
    assert lines(store, keep=90 * day)["history"].level == "OK", "who asks may say so"


def test_a_node_says_for_how_long_it_keeps_records() -> None:
    scheduler = Scheduler("memory://", keep="90d", enabled=True)
    with scheduler:
        assert lines(scheduler.open().store)["history"].detail == "records are kept for 90d"
