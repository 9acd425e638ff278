"""What a page offers next: acts on a row and on an alarm, the end of a backfill, copies, and where else to look."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from solocron.client import Client
from solocron.service.pages.alarms import alarm_entry, alarms_page
from solocron.service.pages.job import facts_of
from solocron.service.pages.nodes import nodes_table
from solocron.service.pages.render import render
from solocron.service.roles import Role
from tests.unit.service import every_page as made
from tests.unit.service import world
from tests.unit.service.browsing import Browser
from tests.unit.service.kit import World
from tests.unit.service.kit import world as open_world
from tests.unit.service.world import LINKS, UTC_READING, VIENNA


@pytest.fixture
def own() -> World:
    """A world for a test that changes it."""
    return open_world()


@pytest.fixture
def browser(own: World) -> Browser:
    return Browser(own)


def source(name: str, **frame: str) -> str:
    page, reading = made.every_page()[name]
    return render(page, replace(made.frame(reading), **frame))


def test_a_page_that_follows_the_store_can_be_told_to_try_again_and_one_that_does_not_has_no_such_button():
    assert '<button class="btn small" type="button" id="retry" hidden>Try again</button>' in source("jobs")
    assert 'id="retry"' not in source("explain", topics="")


def test_the_clock_of_a_page_says_how_far_its_zone_is_from_utc():
    assert 'data-shift="0"' in source("jobs")
    assert 'data-shift="3600000"' in source("job")


def test_keys_on_a_row_open_the_acts_on_its_job_and_a_reader_has_none():
    rows = dict(re.findall(r'<tr class="[^"]*" data-t="([^"]*)" data-p="([^"]*)">', source("jobs")))
    assert rows["/a/b/jobs/usage.rollup/trigger"] == "/a/b/jobs/usage.rollup/pause"
    assert rows["/a/b/jobs/etl.load/trigger"] == "/a/b/jobs/etl.load/resume", "it is paused"
    assert len(rows) == len(world.jobs())
    assert "or that of the row" in source("jobs"), "the list of keys tells it"
    with_none = made.jobs_page(
        world.jobs(),
        strips={},
        asked=made.JobsAsked(),
        total=8,
        not_well=0,
        counted_to=9,
        reading=UTC_READING,
        links=LINKS,
    )
    assert "data-t=" not in render(with_none, made.frame(role="read"))


def test_missed_slots_are_run_from_their_alarm_by_a_backfill_of_just_these():
    (missed,) = (one for one in world.alarms().alarms if one.kind == "missed")
    (act,) = alarm_entry(missed, UTC_READING, LINKS, operates=True).acts
    address = urlsplit(act.href)
    assert (act.label, act.dialog, address.path) == ("Run the missed", True, "/a/b/jobs/usage.rollup.eu/backfill")
    assert parse_qs(address.query) == {
        "only": ["missed"],
        "start": ["2026-11-16T02:15:00+00:00"],
        "end": ["2026-11-16T02:26:00+00:00"],
    }
    one = replace(missed, detail="the slot of 2026-11-16T02:15:30Z")
    (alone,) = alarm_entry(one, UTC_READING, LINKS, operates=True).acts
    assert parse_qs(urlsplit(alone.href).query)["end"] == ["2026-11-16T02:16:00+00:00"]
    (looks,) = alarm_entry(missed, UTC_READING, LINKS, operates=False).acts
    assert (looks.label, looks.dialog) == ("Why", False)


def test_the_backfill_of_missed_slots_opens_with_their_span(browser: Browser) -> None:
    found = browser.get("/jobs/invoices/backfill?only=missed&start=2026-01-01T02:15:00Z&end=2026-01-01T03:16:00Z")
    shown = found.response.body.decode()
    assert 'name="start" value="2026-01-01T02:15"' in shown
    assert 'name="end" value="2026-01-01T03:16"' in shown


def test_an_alarm_tells_its_instants_on_the_clocks_of_the_page():
    page = alarms_page(world.alarms(), reading=UTC_READING, links=LINKS, operates=True)
    words = [entry.words for entry in page.entries]
    assert words[1] == "3 slots, 02:15:00 to 02:25:00; a later slot ran instead"
    assert words[0].endswith(". billing answers for it. Runbook:")
    assert page.entries[0].code == "https://wiki.example/dunning"


def test_the_error_of_a_failing_job_is_where_its_link_leads(browser: Browser) -> None:
    (href,) = re.findall(r'href="([^"]*)">See the error</a>', browser.text("/"))
    assert "broken" in browser.text(html.unescape(href)).partition("<main")[2]


def begin_backfill(own: World) -> Client:
    client = Client(own.shop.store)
    first = datetime(2026, 1, 1, tzinfo=UTC)
    assert client.backfill("report", first, first + timedelta(days=5), key="k").waiting == 5
    return client


def test_a_backfill_under_way_is_cancelled_from_the_page_of_its_job(own: World, browser: Browser) -> None:
    client = begin_backfill(own)
    assert len(own.ask("/api/v1/backfills").json["items"]) == 1
    (href,) = re.findall(r'href="(/runs/[^"]*/cancel)" data-dialog', browser.text("/jobs/report"))
    shown = browser.text(href)
    assert "5 slots from" in shown
    assert "not run, and put on record as cancelled" in shown
    sent = browser.send(browser.form(href), reason="wrong range")
    assert (sent.status, sent.header("location")) == (303, "/jobs/report?done=cancelled")
    assert client.backfills("report") == []
    assert own.ask("/api/v1/backfills").json["items"] == []
    assert "wrong range" in (client.runs("report", status="cancelled")[0].reason or "")
    assert client.audit().entries[0].act == "cancel"
    assert browser.get(href).status == 404, "it is over"


def test_a_reader_sees_a_backfill_and_cannot_cancel_it(own: World) -> None:
    begin_backfill(own)
    shown = Browser(own, Role.READ).text("/jobs/report")
    assert "<h2>Backfills</h2>" in shown
    assert "/cancel" not in shown


def test_what_is_copied_is_in_the_button_and_shows_only_where_there_is_a_clipboard():
    run = source("run")
    assert f'<button class="copy" type="button" value="{world.TAKEN}"' in run
    assert f'value="solocron show {world.TAKEN} --namespace billing"' in run
    assert f'value="{world.SECOND.fence}"' in run
    assert re.search(r'value="" aria-label="Copy the traceback"[^>]*>Copy</button><pre', run)
    assert 'value="solocron show usage.rollup --namespace billing"' in source("job")
    assert 'value="solocron show usage.rollup"' in source("job", namespace="default")
    assert "--namespace &#39;two words&#39;" in source("job", namespace="two words")


def test_a_job_and_a_run_lead_to_the_same_in_the_api(own: World, browser: Browser) -> None:
    for address in ("/jobs/invoices", f"/runs/{own.names['run']}"):
        (href,) = re.findall(r'href="([^"]*)">JSON</a>', browser.text(address))
        found = browser.get(href)
        assert (found.status, found.header("content-type")) == (200, "application/json"), href


@pytest.mark.parametrize(
    ("left", "words", "tone"),
    [
        (11.0, "lease left 11 s · fence …907441", ""),
        (-3.0, "lease over since 3 s · fence …907441", "miss"),
        (None, "its lease is over, it is taken over next · fence …907441", "lost"),
    ],
)
def test_a_running_job_tells_its_holder_and_what_is_left_of_the_lease(left: float | None, words: str, tone: str):
    job = next(one for one in world.jobs() if one.name == "invoices.generate")
    job = replace(job, running=(replace(job.running[0], lease_left_s=left),))
    facts = facts_of(job, reading=UTC_READING, links=LINKS, took=None, late=None, accounted=None)
    (held,) = (one for one in facts if one.name == "Held by")
    assert (held.value, held.under, held.tone) == ("worker-b", words, tone)


def test_the_next_slot_is_told_in_the_zone_of_the_job_and_in_utc():
    job = replace(next(one for one in world.jobs() if one.name == "usage.rollup"), zone="Europe/Vienna")
    due = world.at("03:15").astimezone(VIENNA.zone)
    facts = facts_of(replace(job, next=due), reading=VIENNA, links=LINKS, took=None, late=None, accounted=None)
    assert facts[0].under == "04:15 Vienna · 03:15 UTC"
    tomorrow = replace(job, next=due + timedelta(days=1))
    facts = facts_of(tomorrow, reading=VIENNA, links=LINKS, took=None, late=None, accounted=None)
    assert facts[0].under == "04:15 Vienna · 03:15 UTC · Tue 17 Nov"
    facts = facts_of(replace(job, next=world.at("03:15"), zone="UTC"), reading=UTC_READING, links=LINKS, took=None,
                     late=None, accounted=None)  # fmt: skip
    assert facts[0].under == "03:15 UTC"


def test_a_late_beat_is_told_and_marked_from_half_a_lease_on():
    late = (world.node_view("a", late_s=1.2, late_at=world.at("03:00")), world.node_view("b", late_s=7.5))
    table = nodes_table((*late, world.node_view("c")), reading=UTC_READING, links=LINKS, empty="")
    place = [column.title for column in table.columns].index("last renewal")
    cells = [row.cells[place] for row in table.rows]
    assert {cell.text for cell in cells} == {"03:12:43"}
    assert [(cell.after, cell.tone) for cell in cells] == [
        ("once 1.2 s late", ""),
        ("once 7.5 s late", "miss"),
        ("", ""),
    ]
    assert cells[0].title == "a beat came late at 03:00:00"


def test_a_node_shows_what_it_holds_and_the_sessions_before_it():
    live, gone = made.node(1), made.node(5)
    assert [row.cells[0].text for row in live.holds.rows] == ["invoices.generate"]
    assert gone.holds.rows == ()
    assert gone.holds.empty == "Its session is over: it holds nothing."
    ends = [row.cells[-1].text for row in live.earlier.rows]
    assert ends == ["it closed its session", "its lease ran out, buried by worker-a"]
    assert live.earlier.rows[0].cells[0].href == LINKS.node("worker-b-5c11")


def test_the_sessions_before_one_are_those_of_its_host_in_page_and_api(own: World, browser: Browser) -> None:
    own.shop.later(5)
    own.shop.tick()
    listed = own.ask("/api/v1/nodes", query="state=ended").json["items"]
    first, *_, last = sorted(listed, key=lambda one: one["started_at"])
    told = own.ask(f"/api/v1/nodes/{last['session']}").json
    assert {one["session"] for one in told["earlier"]} == {one["session"] for one in listed} - {last["session"]}
    assert told["earlier"][0]["started_at"] >= told["earlier"][-1]["started_at"]
    assert own.ask(f"/api/v1/nodes/{first['session']}").json["earlier"] == []
    shown = browser.text(f"/nodes/{last['session']}")
    assert all(f'href="/nodes/{one["session"]}"' in shown for one in told["earlier"])
