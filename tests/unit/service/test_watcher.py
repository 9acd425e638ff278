"""The watcher: one bounded pass for all who look, and changes that a reader can follow or knows to have missed."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.errors import StoreUnavailable
from solocron.model.documents.session import RefusedEnd, SelfReport
from solocron.service.board.changes import MOST_JOBS, Changes, Position, SeenRun, told
from solocron.service.board.watcher import QUIET, Watcher
from solocron.service.moments import of_one_moment
from solocron.stores.paging import sessions_since
from solocron.testing.conformance.kit import put
from tests.unit.cli.kit import Shop
from tests.unit.cli.kit import shop as open_shop

ALL = frozenset(["runs", "nodes", "alarms", "jobs", "audit", "job:invoices", "job:report"])
SIX_SECONDS = 3
"""Passes of 2 s."""


class Time:
    """A boot clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A shop, a watcher, and what it has told since the last question."""

    def __init__(self) -> None:
        self.shop: Shop = open_shop()
        self.time = Time()
        self.client = Client(self.shop.store)
        self.watcher = Watcher(of_one_moment(lambda: self.client), clock=self.time)
        self.watcher.look()
        self.position = self.watcher.changes.position

    def looks(self, passes: int = 1, *, every: float = 10) -> None:
        for _ in range(passes):
            self.time.now += every
            self.watcher.look()

    def news(self, wanted: frozenset[str] = ALL) -> dict[str, Any] | None:
        changes, self.position = self.watcher.changes.since(self.position)
        assert changes is not None, "a gap"
        return told(changes, wanted)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_namespace_in_which_nothing_happens_has_no_changes(watched: Watched) -> None:
    watched.looks(12)
    assert watched.news() is None


def test_a_run_that_ended_is_told_once_with_its_job(watched: Watched) -> None:
    run = watched.shop.ran("invoices")
    watched.looks()
    news = watched.news()
    assert news is not None
    assert {"job:invoices", "runs"} <= set(news["topics"])
    told_run = {"run": run, "job": "invoices", "status": "succeeded", "node": "kitchen", "attempt": 1}
    assert told_run in news["runs"]
    watched.looks(4)
    rest = watched.news(frozenset(["runs"]))
    assert rest is None, "the same record again"


def test_a_run_that_begins_is_told_while_it_runs(watched: Watched) -> None:
    seen: list[Any] = []

    @watched.shop.scheduler.every("1h", name="long")
    def long() -> None:
        watched.looks()
        seen.append(watched.news(frozenset(["job:long"])))

    watched.shop.tick()
    watched.looks(2 * SIX_SECONDS)
    watched.news()
    watched.shop.scheduler.run_now("long")
    watched.looks()
    assert [run["status"] for run in seen[0]["runs"]] == ["running"]
    ended = watched.news(frozenset(["job:long"]))
    assert ended is not None
    assert [run["status"] for run in ended["runs"]] == ["succeeded"]


def test_a_pause_by_another_process_concerns_the_job(watched: Watched) -> None:
    watched.shop.scheduler.pause("report")
    watched.looks(SIX_SECONDS)
    news = watched.news()
    assert news is not None
    assert {"jobs", "job:report"} <= set(news["topics"])
    assert "job:invoices" not in news["topics"]


def test_a_pause_that_was_shown_and_is_gone_before_the_next_pass_is_told_at_that_pass(watched: Watched) -> None:
    """Without an author there is no act on record, and the number of paused jobs is as it was."""
    watched.looks(6)
    for turn in range(6):
        watched.shop.scheduler.pause("report")
        watched.watcher.note_shown([watched.client.get_job("report")])
        watched.shop.scheduler.resume("report")
        watched.looks()
        assert watched.news() == {"topics": ["job:report", "jobs"], "runs": []}, turn
        watched.watcher.note_shown([watched.client.get_job("report")])
        watched.looks(6)
        assert watched.news() is None, "what is shown is so"


def test_a_pause_that_follows_another_is_told_to_a_page_that_showed_the_one_between(watched: Watched) -> None:
    watched.shop.scheduler.pause("report", note="the first")
    watched.looks(6)
    watched.news()
    for _ in range(2):
        watched.shop.scheduler.resume("report")
        watched.shop.scheduler.pause("report", note="another")
        watched.watcher.note_shown([watched.client.get_job("report")])
    watched.looks()
    assert watched.news() == {"topics": ["job:report", "jobs"], "runs": []}


def test_of_very_many_paused_jobs_only_the_names_are_read(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.service.board.watcher._READ", 0)
    watched.shop.scheduler.pause("report")
    watched.looks(SIX_SECONDS)
    assert watched.news() == {"topics": ["job:report", "jobs"], "runs": []}
    watched.watcher.note_shown([watched.client.get_job("report")])
    watched.looks(6)
    assert watched.news() is None
    watched.shop.scheduler.resume("report")
    watched.watcher.note_shown([watched.client.get_job("report")])
    watched.shop.scheduler.pause("report")
    watched.looks()
    assert watched.news() == {"topics": ["job:report", "jobs"], "runs": []}, "it was shown as free"


def test_an_act_on_record_concerns_its_job_within_seconds(watched: Watched) -> None:
    from solocron.model.documents.audit import Act

    with watched.client.audited(Act(act="pause", subject="report", via="cli", who="ana")):
        pass
    watched.looks(SIX_SECONDS)
    news = watched.news()
    assert news is not None
    assert {"audit", "jobs", "job:report"} <= set(news["topics"])


def test_a_node_that_comes_or_goes_is_told(watched: Watched) -> None:
    watched.shop.scheduler.start()
    watched.looks(5)
    begun = watched.news(frozenset(["nodes"]))
    watched.shop.scheduler.stop()
    watched.looks(5)
    assert (begun, watched.news(frozenset(["nodes"]))) == ({"topics": ["nodes"], "runs": []},) * 2


def test_a_job_that_a_deploy_adds_or_removes_is_told_within_seconds(watched: Watched) -> None:
    watched.looks(6)
    watched.shop.scheduler.add("new", "invoices", "0 3 * * *")
    watched.looks(SIX_SECONDS)
    assert watched.news() == {"topics": sorted(ALL), "runs": []}, "every page may show a job that came"
    watched.shop.scheduler.remove("new")
    watched.looks(SIX_SECONDS)
    assert watched.news() == {"topics": sorted(ALL), "runs": []}
    watched.looks(12)
    assert watched.news() is None


def test_a_node_with_other_code_concerns_every_page_and_a_restart_does_not(watched: Watched) -> None:
    """A definition that changes leaves the number of jobs as it is, but it comes with a node."""
    watched.looks(6)
    watched.shop.tick()  # a session of the same code
    watched.looks(SIX_SECONDS)
    assert watched.news(frozenset(["job:report"])) is None
    other = Scheduler(watched.shop.url, node="kitchen", revision=2)
    other.every("2h", name="invoices")(lambda: None)
    other.tick()
    watched.looks(SIX_SECONDS)
    assert (watched.news() or {})["topics"] == sorted(ALL)
    watched.looks(SIX_SECONDS)
    assert (watched.news() or {})["topics"] == sorted(ALL), "it may have been seen before it had declared all jobs"
    watched.looks(12)
    assert watched.news(frozenset(["job:report"])) is None


def test_a_refused_result_is_told_to_its_job_and_to_no_other(watched: Watched) -> None:
    watched.shop.tick()
    watched.looks(6)
    watched.news()
    session = sessions_since(watched.shop.store, 0)[0]
    end = RefusedEnd(run="invoices@0006436d8f30aa00", fence=7, at=1, outcome="succeeded")
    put(watched.shop.store, replace(session, report=SelfReport(refused=(end,))))
    watched.looks(SIX_SECONDS)
    assert watched.news() == {"topics": ["job:invoices", "nodes", "runs"], "runs": []}


def test_a_pass_is_made_once_however_many_ask_and_costs_two_statements_a_second(watched: Watched) -> None:
    store = watched.shop.store
    for _ in range(10):
        before = store.statements.total()
        watched.looks()
        cost = store.statements.total() - before
        assert 2 <= cost <= 12
        for _ in range(100):
            watched.watcher.look()
        assert store.statements.total() - before == cost
    for paused in (False, True):
        if paused:
            watched.shop.scheduler.pause("report")
            watched.looks(12)
        before = store.statements.total()
        watched.looks(12, every=2)
        assert (store.statements.total() - before) / 24 <= 2, paused


def test_a_caller_that_comes_while_another_looks_does_not_wait(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    original = watched.shop.store.history

    def slow(query: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return original(query)

    monkeypatch.setattr(watched.shop.store, "history", slow)
    other = threading.Thread(target=watched.looks)
    other.start()
    assert begun.wait(60)
    assert watched.watcher.look(at_once=True) > 0, "it returns although the pass is under way"
    go.set()
    other.join()


def test_a_store_that_is_away_and_back_concerns_everything(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: Any) -> Any:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(watched.shop.store, "history", away)
        watched.looks(3)
        assert not watched.watcher.answers
        assert watched.news(frozenset(["nodes"])) == {"topics": ["nodes"], "runs": []}
    watched.looks()
    assert watched.watcher.answers
    assert watched.news(frozenset(["nodes"])) == {"topics": ["nodes"], "runs": []}


def test_after_a_time_without_a_pass_an_old_position_is_a_gap(watched: Watched) -> None:
    watched.time.now += QUIET + 1
    watched.watcher.look()
    assert watched.watcher.changes.since(watched.position)[0] is None


def test_more_ends_than_one_pass_reads_concern_everything(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.service.board.watcher._RECORDS", 3)
    for _ in range(4):
        watched.shop.ran("broken")
    watched.looks()
    news = watched.news(frozenset(["job:report"]))
    assert news == {"topics": ["job:report"], "runs": []}


def changes() -> Changes:
    return Changes(lambda: "t")


def seen(number: int, job: str = "a") -> SeenRun:
    return SeenRun(f"{job}@{number}", job, "succeeded", "n", 1)


def test_a_position_that_is_too_old_or_of_another_watch_is_a_gap() -> None:
    made = changes()
    begin = made.position
    for _ in range(1_000):
        made.add(["runs"])
    assert len(made.since(begin)[0] or ()) == 1_000
    made.add(["runs"])
    assert made.since(begin)[0] is None
    assert made.since(Position("other", 500))[0] is None
    assert made.since(Position("t", 5_000))[0] is None, "from before a restart that took the same token"


@pytest.mark.parametrize("text", ["", "-", "t-", "t-x", "t-1-", "-1", "t-٣", "x" * 70 + "-1"])
def test_an_id_that_is_not_ours_is_no_position(text: str) -> None:
    assert Position.parse(text) is None
    assert Position.parse("t-12") == Position("t", 12)


def test_changes_are_put_together_within_bounds() -> None:
    made = changes()
    begin = made.position
    made.add(["runs", "job:a"], [seen(1), seen(2)])
    made.add(["runs", "job:b"], [seen(3, "b")])
    found, _ = made.since(begin)
    assert found is not None
    assert told(found, frozenset(["alarms"])) is None
    few = told(found, frozenset(["job:b"]))
    assert few is not None
    assert (few["topics"], [run["run"] for run in few["runs"]]) == (["job:b"], ["b@3"])
    many = [seen(number) for number in range(21)]
    made.add(["runs"], many)
    assert (told(made.since(begin)[0] or (), frozenset(["runs"])) or {})["runs"] != []
    made.add(["runs"], many[:20])
    assert told(made.since(begin)[0] or (), frozenset(["runs"])) == {"topics": ["runs"], "runs": []}


def test_a_change_of_very_many_jobs_concerns_all() -> None:
    made = changes()
    begin = made.position
    made.add([f"job:{number}" for number in range(MOST_JOBS + 1)])
    assert told(made.since(begin)[0] or (), frozenset(["job:other"])) == {"topics": ["job:other"], "runs": []}
