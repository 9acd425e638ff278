"""The judge himself is judged: each fault that he must see, made by hand, and he sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from solocron import Run, Scheduler, every
from solocron.clock import SECOND, SystemClock, from_us
from solocron.errors import InvalidError
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin, Record, Status, key_of, run_id
from solocron.stores.contract import Named, Store
from solocron.testing.fleet import Incident, Judge, Ledger, Line, wait_until, witness
from solocron.testing.fleet.ledger import FOLDER

SLOTS = 3


@every("1s", name="job", retries=3)
def job(run: Run) -> None:
    """Never called here: the lines are written by hand."""


class Case:
    """A window of a few slots of one job, a ledger and a log to be filled by hand, and the verdict on them."""

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger(folder)
        self.scheduler = Scheduler(f"memory://{folder.name}")
        self.scheduler.discover(job)
        self.store: Store = self.scheduler.open().store
        self.scheduler.start()
        self.scheduler.stop()
        self.incidents: list[Incident] = []
        schedules = {declared.name: declared.schedule for declared in self.scheduler.registry}
        self.judge = Judge(ledger=self.ledger, store=self.store, schedules=schedules, incidents=self.incidents)
        self.judge.open()
        self.store.shift_clock(SLOTS * SECOND)
        self.judge.close()
        self.slots = [slot for _, slot in self.judge.due()]
        self.ahead = self.store.clock() / 1e6 - SystemClock().boot()

    def says(self, event: str, slot: int, *, after: float, attempt: int = 1, pid: int = 1, **other: Any) -> Line:
        """A body says something, so many seconds after its instant."""
        name = run_id("job", 1, Origin.SCHEDULE, slot)
        facts = {"run": name, "key": key_of("job", Origin.SCHEDULE, slot, None), "fence": attempt, **other}
        at = slot / 1e6 - self.ahead + after
        line = Line(event=event, job="job", slot=slot, attempt=attempt, node=f"n{pid}", pid=pid, at=at, **facts)
        with (self.ledger.folder / f"{pid}.ledger").open("a") as file:
            file.write(json.dumps(asdict(line)) + "\n")
        return line

    def records(self, slot: int, status: Status, *, attempt: int = 1, **other: Any) -> None:
        """The log says something."""
        now = self.store.clock()
        record = Record(
            run=run_id("job", 1, Origin.SCHEDULE, slot), job="job", attempt=attempt, slot=slot, origin=Origin.SCHEDULE,
            status=status, key=key_of("job", Origin.SCHEDULE, slot, None), recorded_at=now, finished_at=now, **other,
        )  # fmt: skip

        def change(doc: Job, now: int) -> Change:
            return Change(doc, (record,))

        self.store.update(Named(Kind.JOB, ("job",)), change)

    def ran(self, *slots: int) -> None:
        """All is well with these."""
        for slot in slots:
            self.says("start", slot, after=0.1)
            self.says("end", slot, after=0.2)
            self.records(slot, Status.SUCCEEDED)


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    case = Case(tmp_path)
    yield case
    case.scheduler.stop()


def test_what_ran_once_is_clean(case: Case) -> None:
    case.ran(*case.slots)
    verdict = case.judge.verdict()
    assert verdict.clean, str(verdict)
    assert (verdict.slots, verdict.once, verdict.twice, verdict.lost) == (SLOTS, SLOTS, 0, 0)
    assert verdict.takeover_s is None


def test_a_slot_that_no_body_ended_is_lost(case: Case) -> None:
    first, second, third = case.slots
    case.ran(first)
    case.says("start", second, after=0.1)
    case.says("raised", second, after=0.2)
    case.records(second, Status.FAILED, error="no")
    case.records(third, Status.SUCCEEDED)  # the log is not believed
    verdict = case.judge.verdict()
    assert (verdict.once, verdict.lost) == (1, 2)
    assert case.judge.missing() == [("job", second), ("job", third)]
    assert any("attempt 1 failed" in fault for fault in verdict.faults)
    assert not verdict.clean


def test_a_job_without_retries_gets_a_record_and_no_more(case: Case) -> None:
    """Its node died in the middle: no node will ever end that body, and the log says so."""
    first, *others = case.slots
    case.ran(*others)
    case.says("start", first, after=0.1)
    assert not case.judge.wait_settled(within=0, recorded=True)
    case.records(first, Status.LOST)
    assert case.judge.wait_settled(within=0, recorded=True)
    assert not case.judge.wait_settled(within=0)


def test_an_attempt_started_twice_is_twice(case: Case) -> None:
    case.ran(*case.slots)
    case.says("start", case.slots[0], after=0.15, pid=2, fence=2)
    verdict = case.judge.verdict()
    assert (verdict.once, verdict.twice) == (SLOTS - 1, 1)
    assert "attempt 1 started 2 times (n1, n2)" in verdict.faults[0]
    assert not verdict.clean


def test_two_runs_of_one_slot_are_twice(case: Case) -> None:
    case.ran(*case.slots)
    case.says("start", case.slots[0], after=0.5, attempt=2, pid=2, run="job@other")
    assert case.judge.verdict().twice == 1


def test_two_accepted_results_are_twice(case: Case) -> None:
    case.ran(*case.slots)
    case.says("start", case.slots[0], after=0.5, attempt=2)
    case.says("end", case.slots[0], after=0.6, attempt=2)
    case.records(case.slots[0], Status.SUCCEEDED, attempt=2)
    verdict = case.judge.verdict()
    assert verdict.twice == 1
    assert "2 accepted results" in verdict.faults[0]


def test_a_slot_outside_the_window_may_be_twice_too(case: Case) -> None:
    case.ran(*case.slots)
    before = case.slots[0] - SECOND
    case.says("start", before, after=0.1)
    case.says("start", before, after=0.2, pid=2)
    verdict = case.judge.verdict()
    assert (verdict.slots, verdict.once, verdict.twice) == (SLOTS, SLOTS, 1)


def test_the_end_of_a_body_whose_run_was_taken_over_is_stale(case: Case) -> None:
    first, *rest = case.slots
    case.ran(*rest)
    case.says("start", first, after=0.1)
    case.says("start", first, after=0.5, attempt=2, pid=2)
    case.says("end", first, after=0.7, attempt=2, pid=2)
    case.says("end", first, after=0.9)
    case.records(first, Status.LOST)
    case.records(first, Status.SUCCEEDED, attempt=2)
    verdict = case.judge.verdict()
    assert (verdict.stale_refused, verdict.stale_accepted) == (1, 0)
    assert verdict.clean, str(verdict)


def test_a_stale_result_that_was_accepted_is_a_fault(case: Case) -> None:
    first, *rest = case.slots
    case.ran(*rest)
    case.says("start", first, after=0.1)
    case.says("start", first, after=0.5, attempt=2, pid=2)
    case.says("end", first, after=0.9)
    case.records(first, Status.SUCCEEDED)
    verdict = case.judge.verdict()
    assert (verdict.stale_refused, verdict.stale_accepted) == (0, 1)
    assert not verdict.clean


def test_a_start_before_its_instant_is_early(case: Case) -> None:
    case.ran(*case.slots[1:])
    case.says("start", case.slots[0], after=-0.5)
    case.says("end", case.slots[0], after=0.1)
    case.records(case.slots[0], Status.SUCCEEDED)
    verdict = case.judge.verdict()
    assert verdict.early == 1
    assert not verdict.clean


@pytest.mark.parametrize("status", [None, Status.RUNNING])
def test_a_slot_without_a_final_record_is_unrecorded(case: Case, status: Status | None) -> None:
    case.ran(*case.slots[1:])
    case.says("start", case.slots[0], after=0.1)
    case.says("end", case.slots[0], after=0.2)
    if status is not None:
        case.records(case.slots[0], status)
    verdict = case.judge.verdict()
    assert verdict.unrecorded == 1
    assert not verdict.clean


def test_an_end_that_is_not_recorded_is_not_settled(case: Case) -> None:
    """A node may die between the end of a body and its record: another node still has to repeat it."""
    case.ran(*case.slots[1:])
    case.says("start", case.slots[0], after=0.1)
    case.says("end", case.slots[0], after=0.2)
    assert case.judge.missing() == []
    assert not case.judge.wait_settled(within=0.01)
    case.records(case.slots[0], Status.SUCCEEDED)
    assert case.judge.settled()


def test_a_slot_inside_a_summary_is_on_record(case: Case) -> None:
    first, second, third = case.slots
    case.ran(third)
    case.records(second, Status.MISSED, attempt=0, first=first, count=2)
    verdict = case.judge.verdict()
    assert (verdict.unrecorded, verdict.lost) == (0, 2)


def test_a_takeover_counts_from_what_was_done_to_the_node(case: Case) -> None:
    """The store knows no session of this process, so the moment of the kill is what there is."""
    first, *rest = case.slots
    case.ran(*rest)
    start = case.says("start", first, after=0.1, pid=7)
    case.incidents.append(Incident("kill", "n7", 7, start.at + 0.2))
    case.says("start", first, after=2.0, attempt=2, pid=2)
    case.says("end", first, after=2.1, attempt=2, pid=2)
    case.records(first, Status.LOST)
    case.records(first, Status.SUCCEEDED, attempt=2)
    verdict = case.judge.verdict()
    assert verdict.takeover_s == pytest.approx(1.7, abs=0.01)
    assert len(verdict.takeovers) == 1
    assert verdict.kills == 1


def test_a_job_that_is_not_in_the_store_yet_has_no_window(tmp_path: Path) -> None:
    scheduler = Scheduler("memory://empty-for-the-judge")
    scheduler.discover(job)
    schedules = {declared.name: declared.schedule for declared in scheduler.registry}
    judge = Judge(ledger=Ledger(tmp_path), store=scheduler.open().store, schedules=schedules)
    with pytest.raises(RuntimeError, match="not in the store yet: job"):
        judge.open()


def make_run(slot: int) -> Run:
    return Run(
        id="job@1", job="job", slot=from_us(slot), attempt=1, fence=7, key="job@x", node="n1", deadline=None,
        payload=None, previous=None, stopped=lambda: None, report=lambda progress: None,
    )  # fmt: skip


def test_a_body_is_witnessed_from_start_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    ledger = Ledger(tmp_path)
    with witness(make_run(5 * SECOND)):
        (start,) = ledger.open()
        assert (start.job, start.slot, start.fence, start.event) == ("job", 5 * SECOND, 7, "start")
    assert [line.event for line in ledger.lines()] == ["start", "end"]
    assert not ledger.open()

    def fails() -> None:
        with witness(make_run(6 * SECOND)):
            raise KeyError("no")

    with pytest.raises(KeyError):
        fails()
    assert [line.event for line in ledger.lines()][2:] == ["start", "raised"]


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path: Path, case: Case) -> None:
    case.says("start", case.slots[0], after=0.1)
    path = tmp_path / "1.ledger"
    whole = path.read_text()
    path.write_text(whole + whole[:20])
    assert len(case.ledger.lines()) == 1
    path.write_text(whole + whole)
    assert len(case.ledger.lines()) == 2


def test_a_body_without_a_ledger_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    with pytest.raises(InvalidError, match="no ledger to write to"), witness(make_run(0)):
        pass


def test_waiting_in_vain_says_for_what() -> None:
    never: Callable[[], bool] = lambda: False  # noqa: E731
    with pytest.raises(TimeoutError, match=r"waited 0.01 s in vain for rain"):
        wait_until(never, within=0.01, what="rain")
