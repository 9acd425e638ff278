"""The audit lists takeovers and burials beside the acts of callers: each once, in the order of time, bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.clock import from_us, to_us
from solocron.model.documents.audit import name_before, name_of
from solocron.service.audit_list import list_audit
from solocron.service.handle import Service
from solocron.service.problems import ProblemError
from solocron.service.reads import Deeds, LostPage
from solocron.stores.sql.sqlite.store import SQLiteStore
from solocron.stores.url import make_store
from solocron.views import AuditPage, AuditView, NodeView, RunView
from tests.unit.client.test_timeline import story
from tests.unit.service.browsing import HTML
from tests.unit.service.kit import World, tokens
from tests.unit.service.world import NOW, audit_view, node_view, run_view

MINUTE = timedelta(minutes=1)


def act(at: datetime, **changes: Any) -> AuditView:
    usual = {
        "who": "ana",
        "role": "operate",
        "via": "api",
        "act": "pause",
        "subject": "j",
        "note": "",
        "result": "done",
    }
    return audit_view(at=at, **(usual | changes))


def lost(at: datetime, run: str, **changes: Any) -> RunView:
    return run_view("j", at, run=run, status="lost", node="worker-c", finished_at=at, reason="not renewed", **changes)


@dataclass
class Records:
    """Reads over lists, with the bounds and the order of the real ones."""

    acts: list[AuditView] = field(default_factory=list)
    runs: list[RunView] = field(default_factory=list)
    sessions: list[NodeView] = field(default_factory=list)
    scan: int = 2_000

    def now(self) -> datetime:
        return NOW

    def audit(self, *, who: str | None, subject: str | None, limit: int, after: str | None) -> AuditPage:
        named = sorted((name_of(to_us(one.at), f"{place:03}"), one) for place, one in enumerate(self.acts))
        found, looked = list[AuditView](), 0
        for name, one in named:
            if name <= (after or ""):
                continue
            looked += 1
            if who in (None, one.who) and subject in (None, one.subject):
                found.append(one)
            if len(found) == limit:
                return AuditPage(tuple(found), name)
            if looked == self.scan:
                return AuditPage(tuple(found), name, one.at)
        return AuditPage(tuple(found))

    def lost(self, *, job: str | None, before: Any, until: int | None, limit: int) -> LostPage:
        keyed = [((to_us(one.finished_at), one.run, one.attempt), one) for one in self.runs if one.status == "lost"]
        kept = [
            (key, one)
            for key, one in sorted(keyed, key=lambda pair: pair[0], reverse=True)
            if (before is None or key < before) and (until is None or key[0] < until) and job in (None, one.job)
        ]
        return LostPage(tuple(kept[:limit]), kept[limit - 1][0] if len(kept) > limit else None)

    def paused(self) -> tuple[str, ...]:
        return ()

    def deeds(self, jobs: Any, lost: Any) -> Deeds:
        names = {one.run for one in lost}
        return Deeds({}, tuple(one for one in self.runs if one.run in names))

    def nodes(self, *, ended: bool, since: datetime) -> list[NodeView]:
        return [one for one in self.sessions if one.ended_at is None or one.ended_at >= since]


def asked(records: Records, who: str | None = None, subject: str | None = None) -> Any:
    return SimpleNamespace(reads=records, given={"who": who, "subject": subject})


def pages(call: Any, limit: int) -> list[AuditView]:
    """Every line, page by page."""
    found, after = list[AuditView](), None
    for _ in range(1_000):
        page = list_audit(call, limit=limit, after=after)
        assert len(page.entries) <= limit
        found += page.entries
        if page.next is None:
            return found
        assert page.next != after, "it goes on"
        after = page.next
    raise AssertionError("it has no end")


def shown(lines: list[AuditView]) -> list[tuple[str, str]]:
    return [(one.act, one.subject) for one in lines]


@pytest.fixture
def records() -> Records:
    """Acts, takeovers and burials in turn, and at one instant three of each."""
    one, many = NOW - timedelta(hours=1), NOW - timedelta(hours=2)
    made = Records()
    made.acts = [act(one - n * 3 * MINUTE, subject=f"a{n}") for n in range(4)]
    made.acts += [act(many, subject=f"tied{n}") for n in range(3)]
    made.runs = [lost(one - (n * 3 + 1) * MINUTE, f"j@{n:016x}") for n in range(4)]
    made.runs += [lost(many, f"j@{n:016x}") for n in range(100, 103)]
    ends = [one - (n * 3 + 2) * MINUTE for n in range(4)] + [many] * 3
    made.sessions = [
        node_view(f"n{n}", session=f"s{n}", state="ended", ended_at=end, buried_by="worker-b", reason="not renewed")
        for n, end in enumerate(ends)
    ]
    made.sessions.append(node_view("well", state="ended", ended_at=one))
    return made


@pytest.mark.parametrize("scan", [4, 2_000])
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 50])
def test_pages_of_the_merged_list_neither_skip_nor_repeat(records: Records, limit: int, scan: int) -> None:
    records.scan = scan
    found = pages(asked(records), limit)
    assert len(found) == 7 * 3
    assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)
    assert len({(one.act, one.subject) for one in found}) == len(found)
    assert [one.act for one in found[:6]] == ["pause", "loss", "burial"] * 2


def test_a_filter_that_is_broken_off_goes_on_and_hides_nothing_newer(records: Records) -> None:
    records.scan = 2
    found = pages(asked(records, who="worker-b"), 50)
    assert shown(found) == [("burial", f"n{n}") for n in range(7)]
    first = list_audit(asked(records, who="worker-b"), limit=50, after=None)
    assert first.looked_back_to == records.acts[1].at
    assert all(one.at >= first.looked_back_to for one in first.entries)


def test_a_takeover_tells_both_nodes_and_both_fences() -> None:
    gone = lost(NOW - MINUTE, "j@0", fence=3)
    after = run_view("j", NOW - MINUTE, run="j@0", attempt=2, node="worker-a", fence=9, claimed_at=NOW)
    (line,) = pages(asked(Records(runs=[gone, after])), 10)
    assert (line.act, line.subject, line.who, line.via) == ("takeover", "j@0", "worker-a", "node")
    assert line.note == "worker-c lost attempt 1: not renewed"
    assert line.before == {"node": "worker-c", "attempt": 1, "fence": 3}
    assert line.after == {"node": "worker-a", "attempt": 2, "fence": 9}


def test_a_takeover_is_found_by_its_job_its_run_and_the_node_that_took_it(records: Records) -> None:
    run = records.runs[0]
    records.runs.append(run_view("j", run.slot, run=run.run, attempt=2, node="worker-a", claimed_at=NOW))
    assert len(pages(asked(records, subject="j"), 2)) == 7
    assert shown(pages(asked(records, subject=run.run), 2)) == [("takeover", run.run)]
    assert shown(pages(asked(records, who="worker-a"), 2)) == [("takeover", run.run)]
    assert shown(pages(asked(records, subject="n2"), 2)) == [("burial", "n2")]


def test_burials_of_long_ago_are_left_out(records: Records) -> None:
    records.sessions = [node_view("old", state="ended", ended_at=NOW - timedelta(days=8), buried_by="worker-b")]
    assert "burial" not in {one.act for one in pages(asked(records), 50)}


@pytest.mark.parametrize("cursor", ["x", "1/2", "1/3/s", "-1/0/0", "1/0/-1", "1/1/x/j", f"{10**17}/0/0"])
def test_a_place_that_was_not_made_here_is_refused(records: Records, cursor: str) -> None:
    with pytest.raises(ProblemError) as caught:
        list_audit(asked(records), limit=5, after=cursor)
    assert caught.value.status == 400


def test_a_name_that_follows_an_instant_comes_before_all_that_is_older() -> None:
    at = to_us(NOW)
    assert name_before(at + 1) < name_of(at, "0") < name_before(at) < name_of(at - 1, "0")
    assert from_us(at) == NOW


def test_a_pause_that_a_node_gave_is_listed_as_long_as_it_stands() -> None:
    scheduler = Scheduler("memory://own-pauses", node="kitchen")

    @scheduler.every("1h", name="broken", pause_after=1)
    def broken() -> None:
        raise ValueError("no paper")

    scheduler.tick()
    scheduler.trigger("broken")
    scheduler.tick()
    client = Client(make_store("memory://own-pauses"))
    world = World(None, Service(client, tokens=tokens()))  # type: ignore[arg-type]
    (line,) = world.ask("/api/v1/audit").json["items"]
    assert (line["act"], line["subject"], line["who"], line["via"]) == ("pause", "broken", "solocron", "node")
    assert "no paper" in line["note"]
    assert '<a href="/jobs/broken">' in world.ask("/audit", accept=HTML).response.body.decode()
    client.resume("broken", by="ana")
    assert world.ask("/api/v1/audit").json["items"] == []


def test_page_and_api_list_the_same() -> None:
    store = make_store("memory://audit-list")
    story(store)
    world = World(None, Service(Client(store), tokens=tokens()))  # type: ignore[arg-type]
    told = world.ask("/api/v1/audit").json["items"]
    assert {(one["act"], one["who"]) for one in told} == {("takeover", "a"), ("burial", "a")}
    page = world.ask("/audit", accept=HTML).response.body.decode()
    burial = next(one for one in told if one["act"] == "burial")
    assert f'href="/nodes/{burial["before"]["session"]}"' in page
    assert world.ask(f"/nodes/{burial['before']['session']}", accept=HTML).status == 200
    assert 'href="/runs/j@1"' in page


def test_takeovers_burials_and_pauses_cost_six_statements_at_most(tmp_path: Path) -> None:
    store = make_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    assert isinstance(store, SQLiteStore)
    store.open()
    story(store)
    world = World(None, Service(Client(store), tokens=tokens()))  # type: ignore[arg-type]
    world.service.watcher.look(at_once=True)
    before = store.statements.copy()
    assert len(world.ask("/api/v1/audit").json["items"]) == 2
    counted = store.statements - before
    assert counted.total() <= 6, counted
    store.close()
