"""Every page: well formed, without inline code, each link of our own, each text escaped, both times told."""

from __future__ import annotations

import gzip
import html.parser
import re
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from solocron.service.draw.slots import SlotCell
from solocron.service.pages.details import job_page, node_page
from solocron.service.pages.fleet import by_job, by_node, ticks_of, window_of
from solocron.service.pages.links import Links
from solocron.service.pages.lists import JobsAsked
from solocron.service.pages.looks import looks_of
from solocron.service.pages.overview import accounting_of
from solocron.service.pages.render import render, render_part
from solocron.service.pages.runs import runs_table
from solocron.service.pages.slots import SlotFate, kind_of, lay_out, slots_part
from solocron.service.pages.spans import SlotsSpan
from solocron.service.pages.story import story_of
from solocron.service.pages.why import why_page
from solocron.service.pages.words import short_fence, span
from tests.unit.service import every_page as made
from tests.unit.service import world
from tests.unit.service.world import LINKS, NOW, UTC_READING, VIENNA, at

PAGES = made.every_page()
HERE = partial(LINKS.job, "j")
HOSTILE = "\"><img src=x onerror=alert(1)>'{{7*7}}\u202e"
_VOID = {"meta", "link", "input", "br", "img"}


class Reader(html.parser.HTMLParser):
    """Collects elements and attributes, and refuses what is not nested well."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(source)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag, f"{tag} is not nested well"

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.found if name == tag]


@pytest.fixture(params=sorted(PAGES))
def source(request) -> str:
    page, reading = PAGES[request.param]
    return render(page, made.frame(reading))


def test_a_page_has_no_inline_style_and_no_inline_script(source):
    """The content security policy would refuse them, and a page without them cannot be made to run data."""
    for tag, attrs in Reader(source).found:
        assert tag != "style"
        assert not [name for name in attrs if name == "style" or name.startswith("on")]
        if tag == "script":
            assert (attrs.get("src") or "").startswith("/a/b/static/")


def test_a_page_leads_only_to_addresses_below_its_base(source):
    for tag, attrs in Reader(source).found:
        for name in ("href", "src", "action"):
            if attrs.get(name):
                assert attrs[name].startswith(("/a/b/", "#")), (tag, attrs[name])


def test_a_page_has_one_title_and_a_place_for_each_reader(source):
    read = Reader(source)
    assert len(read.all("h1")) == 1
    assert len(read.all("main")) == 1
    assert read.all("html")[0]["lang"] == "en"
    ids = [attrs["id"] for _, attrs in read.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    for head in read.all("th"):
        assert head.get("scope") in ("col", "row")
    for picture in read.all("svg"):
        assert picture.get("aria-hidden") or picture.get("aria-label") or "x" in picture


def test_a_page_is_small(source):
    assert len(gzip.compress(source.encode())) <= 25_000


def test_the_part_is_what_stands_in_the_whole_page():
    page, reading = PAGES["overview"]
    part = render_part(page, made.frame(reading))
    assert part.startswith("<main")
    assert part.strip() in render(page, made.frame(reading))


def hostile(value: object) -> object:
    """Return the value with every text replaced that data could fill; markup, addresses and words of ours stay."""
    ours = {
        "href",
        "tone",
        "icon",
        "kind",
        "action",
        "back",
        "template",
        "section",
        "until",
        "key",
        "state",
        "name",
        "verdict_href",
    }
    if is_dataclass(value) and not isinstance(value, type) and not isinstance(value, Links):
        changed = {}
        for field in fields(value):
            before = getattr(value, field.name)
            if field.name in ours or field.name.endswith("href"):
                continue
            if type(before) is str:
                changed[field.name] = HOSTILE if before else before
            elif isinstance(before, tuple) and before and is_dataclass(before[0]):
                changed[field.name] = tuple(hostile(one) for one in before)
            elif is_dataclass(before):
                changed[field.name] = hostile(before)
        return replace(value, **changed)
    return value


@pytest.mark.parametrize("name", sorted(PAGES))
def test_hostile_text_is_shown_and_nothing_else(name):
    page, reading = PAGES[name]
    source = render(hostile(page), made.frame(reading))
    read = Reader(source)
    assert not read.all("img")
    assert not [attrs for _, attrs in read.found if any(key.startswith("on") for key in attrs)]
    assert "\u202e" not in source
    assert "49" not in re.findall(r"'(\d+)", source)


def test_a_hostile_job_name_cannot_leave_its_address():
    links = Links("/x")
    assert links.job("../../admin?a#b") == "/x/jobs/..%2F..%2Fadmin%3Fa%23b"
    assert links.run("usage@06#3") == "/x/runs/usage@06%233"


def test_only_a_reader_who_may_act_sees_acts():
    page, reading = PAGES["job"]
    assert "Run now" in render(page, made.frame(reading))
    assert "Run now" not in render(page, made.frame(reading, role="read"))


def test_the_accounting_is_green_only_when_all_is_compared_and_nothing_is_missing():
    def verdict(**changes):
        part = accounting_of(world.sums(**changes), UTC_READING, LINKS)
        return part.verdict, part.verdict_tone

    assert verdict() == ("Every one is accounted for.", "ok")
    assert verdict(checked_jobs=41) == ("41 of 52 jobs checked so far.", "miss")
    missing = ("usage.rollup", at("01:15"))
    assert verdict(unaccounted=(missing,), missing=1) == ("1 slot is not accounted for.", "fail")
    assert verdict(unaccounted=(missing,) * 2, missing=2, checked_jobs=41) == ("2 slots are not accounted for.", "fail")
    assert verdict(left_out={"beat": "too many slots"}) == ("1 job could not be compared.", "miss")


def test_the_fleet_shows_takeovers_with_both_fences_and_the_refused_result():
    lanes = {lane.name: lane for lane in made.fleet().lanes}
    assert "taken over by worker-a after 0.04 s" in lanes["worker-c"].svg
    assert "fence …300212 → …471083" in lanes["worker-c"].svg
    assert "its result was refused" in lanes["worker-c"].svg
    assert "takehead" in lanes["worker-a"].svg
    assert "url(#hatch-dead)" in lanes["api-2"].svg
    assert "url(#hatch-dead)" not in lanes["worker-a"].svg


def test_a_silent_node_says_how_long_it_is_past_its_lease():
    node = world.node_view("worker-x", state="silent", expires_at=NOW - timedelta(seconds=7))
    common = {"runs": (), "to_come": (), "reading": UTC_READING, "links": LINKS}
    (lane,) = by_node(nodes=[node], window=window_of(NOW, 3_600), **common).lanes
    assert ("miss", "silent, 7 s past its lease") in lane.words


def test_messages_that_wait_are_in_the_lane_of_their_queue_below_the_live_nodes():
    nodes = [world.node_view("worker-x"), world.node_view("worker-y", state="dead", ended_at=NOW)]
    said = "waits in celery since 03:10:00, not picked up"
    waits = world.run_view(
        "etl.load", at("03:00"), status="offered", node=None, claimed_at=None, started_at=None, finished_at=None,
        carrier="celery", reason=said,
    )  # fmt: skip
    common = {"runs": (waits,), "to_come": (), "reading": UTC_READING, "links": LINKS, "window": window_of(NOW, 3_600)}
    lanes = by_node(nodes=nodes, **common).lanes
    assert [lane.name for lane in lanes] == ["worker-x", "celery", "worker-y"]
    assert lanes[1].words == (("", "queue, 1 message waits"),)
    assert lanes[1].href == LINKS.runs(status="offered")
    assert said in lanes[1].svg
    (lane,) = by_job(**common).lanes
    assert (lane.name, said in lane.svg) == ("etl.load", True)


@pytest.mark.parametrize("seconds", [3_600, 6 * 3_600, 86_400, 7 * 86_400])
def test_the_axis_has_few_labels_on_round_times(seconds):
    ticks = ticks_of(window_of(NOW, seconds), VIENNA)
    assert 2 <= len(ticks) <= 9
    assert all(VIENNA.local(when).second == 0 for when, _ in ticks)


def test_each_slot_stands_in_one_cell_and_the_fold_is_split():
    fates = world.fates()
    grid = lay_out(fates, job="usage.rollup", chosen=at("02:15"), reading=VIENNA, here=HERE, days_off={})
    cells = [cell for row in grid.rows for cell in row.cells if cell.kind]
    split = [cell for cell in cells if cell.kind == "two"]
    assert (grid.corner, len(grid.columns)) == ("day", 24)
    assert len(cells) + len(split) == len(fates)
    assert len(split) == 1
    assert [cell.kind for cell in cells if cell.chosen] == ["lost"]
    assert sum(cell.kind == "next" for cell in cells) == 1


@pytest.mark.parametrize(("every", "row"), [(timedelta(hours=1), "Sun 29 Mar"), (timedelta(days=1), "23 Mar")])
def test_a_time_that_the_clocks_skip_is_a_crossed_cell(every, row):
    """On 29 March 2026 Vienna's clocks go from 02:00 to 03:00; the schedule leaves that slot out."""
    first, vienna = datetime(2026, 3, 20, 1, 15, tzinfo=UTC), ZoneInfo("Europe/Vienna")
    fates = [
        SlotFate(slot=slot, status="succeeded", attempts=1)
        for slot in (first + n * every for n in range(timedelta(days=12) // every))
        if every < timedelta(days=1) or slot.date() != date(2026, 3, 29)
    ]
    if every >= timedelta(days=1):  # at 02:15 in Vienna, whatever its offset
        fates = [replace(one, slot=one.slot.astimezone(vienna).replace(hour=2).astimezone(UTC)) for one in fates]
    grid = lay_out(fates, job="j", chosen=None, reading=VIENNA, here=HERE, days_off={})
    (gap,) = [(line.label, cell) for line in grid.rows for cell in line.cells if cell.kind == "gap"]
    assert gap == (row, SlotCell(kind="gap", label="Sun 29 Mar 02:15: does not exist, the clocks go forward"))
    assert (
        "does not exist on this day"
        in dict(slots_part(fates, job="j", chosen=None, reading=VIENNA, here=HERE).legend).values()
    )


@pytest.mark.parametrize(
    ("every", "corner"),
    [
        (timedelta(minutes=1), "hour"),
        (timedelta(hours=1), "day"),
        (timedelta(days=1), "week from"),
        (timedelta(days=31), "year"),
    ],
)
def test_rows_and_columns_follow_the_rhythm(every, corner):
    fates = [SlotFate(slot=NOW - n * every, status="succeeded", attempts=1) for n in range(60, 0, -1)]
    grid = lay_out(fates, job="j", chosen=None, reading=VIENNA, here=HERE, days_off={})
    assert grid.corner == corner
    assert sum(cell.count for row in grid.rows for cell in row.cells if cell.kind) == 60


def test_two_slots_in_one_cell_show_the_worse_and_their_number():
    good = SlotFate(slot=at("01:00"), status="succeeded", attempts=1)
    bad = SlotFate(slot=at("01:30"), status="failed", attempts=3)
    others = [SlotFate(slot=at("01:00") + timedelta(hours=n), status="succeeded", attempts=1) for n in range(1, 9)]
    grid = lay_out([good, bad, *others], job="j", chosen=None, reading=UTC_READING, here=HERE, days_off={})
    (cell,) = [cell for row in grid.rows for cell in row.cells if cell.count > 1]
    assert (cell.kind, cell.count) == ("fail", 2)


@pytest.mark.parametrize(
    ("status", "attempts", "taken", "kind"),
    [
        ("succeeded", 1, False, "ok"),
        ("succeeded", 2, False, "retry"),
        ("succeeded", 2, True, "lost"),
        ("failed", 3, False, "fail"),
        ("timed_out", 1, False, "fail"),
        ("lost", 1, False, "fail"),
        ("missed", 0, False, "miss"),
        ("dropped", 0, False, "miss"),
        ("skipped", 0, False, "skip"),
        ("due", 0, False, "wait"),
        ("to come", 0, False, "far"),
        ("not defined", 0, False, ""),
        ("unaccounted", 0, False, "gone"),
        ("running", 1, False, "run"),
        (None, 0, False, "far"),
    ],
)
def test_each_fate_has_its_kind(status, attempts, taken, kind):
    assert kind_of(SlotFate(slot=NOW, status=status, attempts=attempts, taken_over=taken)) == kind


def test_the_story_is_told_in_the_order_in_which_it_happened():
    story = story_of(at("02:15"), (world.LOST, world.SECOND), refused=(world.REFUSED,), reading=VIENNA, links=LINKS)
    assert [line.what for line in story.lines] == [
        "Due",
        "Claimed by worker-c",
        "Lost",
        "Taken over by worker-a",
        "Refused",
        "Succeeded",
    ]
    assert story.badge.word == "succeeded on attempt 2"
    assert story.title == "Mon 16 Nov, 03:15 in Vienna"


def test_the_story_of_a_lost_attempt_says_when_its_node_was_last_heard_of():
    ended = {"state": "ended", "ended_at": at("02:34:31"), "buried_by": "worker-b"}
    holder = world.node_view("worker-c", last_renewal=at("02:34:15.9"), **ended)
    later = world.node_view("worker-c", started_at=at("02:37"), last_renewal=NOW)
    attempts, nodes = (world.LOST, world.SECOND), (later, holder, world.node_view("worker-a"))
    story = story_of(at("02:15"), attempts, refused=(world.REFUSED,), nodes=nodes, reading=VIENNA, links=LINKS)
    assert [line.what for line in story.lines][1:4] == ["Claimed by worker-c", "Last renewal", "Lost"]
    assert (story.lines[2].at, story.lines[2].more) == ("03:34:15.9", "then silent for 15 s")
    assert [line.what for line in story.lines].count("Last renewal") == 1


def test_a_slot_given_in_its_own_zone_is_told_in_utc_too():
    """The cells of a job in another zone are chosen by such an address."""
    slot = at("02:15").astimezone(VIENNA.zone)
    assert story_of(slot, (world.LOST, world.SECOND), reading=VIENNA, links=LINKS).utc == "02:15:00 UTC"


def test_an_attempt_that_waits_in_a_queue_comes_after_the_one_before_it():
    second = replace(
        world.SECOND, status="offered", reason="waits in celery, not picked up", node=None, fence=0, claimed_at=None,
        started_at=None, finished_at=None,
    )  # fmt: skip
    story = story_of(at("02:15"), (world.LOST, second), reading=VIENNA, links=LINKS)
    line = story.lines[-1]
    assert (line.what + line.rest, line.at) == ("Offered: waits in celery, not picked up", "attempt 2")


def test_a_slot_that_did_not_run_has_its_reason_in_the_row():
    missed = world.not_run("j", at("01:00"), "missed", "no live node of its pool", count=3, first=at("00:00"))
    (row,) = runs_table([missed], reading=UTC_READING, links=LINKS, with_job=True, empty="").rows
    assert [cell.text for cell in row.cells if cell.text] == ["00:00, 3 ×", "j", "no live node of its pool"]
    assert [cell.badge.word for cell in row.cells if cell.badge] == ["3 missed"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.003, "3 ms"),
        (0.21, "0.21 s"),
        (1.4, "1.4 s"),
        (59.7, "1 m"),
        (133, "2 m 13 s"),
        (3_725, "1 h 02 m"),
        (-5, "−5 s"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations_are_told_in_two_units(seconds, words):
    assert span(seconds) == words


def test_times_are_told_in_the_zone_of_the_page():
    assert VIENNA.stamp(at("02:15")) == "03:15"
    assert VIENNA.stamp(at("22:30", 15)) == "Sun 23:30"
    assert VIENNA.stamp(datetime(2025, 11, 16, tzinfo=UTC_READING.zone)) == "Sun 16 Nov 2025 01:00"
    assert UTC_READING.until(NOW + timedelta(seconds=133)) == "in 2 m 13 s"
    assert UTC_READING.until(NOW) == "now"


def test_a_fence_is_cut_at_its_beginning():
    assert (short_fence(1_794_798_907_441), short_fence(17)) == ("…907441", "17")


def looks(**changes):
    values = {"jobs": (), "nodes": (), "alarms": (), "unserved": {}, "operates": True}
    return looks_of(**(values | changes), reading=UTC_READING, links=LINKS)


def test_the_worst_is_looked_at_first_and_at_most_eight():
    told = made.looks()
    assert [entry.title for entry in told[:2]] == ["pool eu", "dunning.send"]
    assert "SMTPServerDisconnected" in told[1].code
    many = tuple(world.job_view(f"job{n}", failures=1, last_error="E") for n in range(30))
    assert len(looks(jobs=many)) == 8


def test_a_job_is_not_told_again_by_its_alarm():
    alarm = world.alarms().alarms[0]
    job = world.job_view(alarm.subject, failures=3)
    assert [entry.title for entry in looks(jobs=(job,), alarms=(alarm,))] == [alarm.subject]
    assert [entry.title for entry in looks(alarms=(alarm,))] == [alarm.subject]


def test_a_paused_job_is_not_late_and_a_reader_is_offered_no_act():
    due = NOW - timedelta(minutes=3)
    assert [entry.about for entry in looks(jobs=(world.job_view("j", due_at=due),))] == ["is late by 3 m"]
    paused = next(job for job in world.jobs() if job.paused)
    assert looks(jobs=(replace(paused, due_at=due),)) == ()
    failing = (world.job_view("j", failures=2),)
    assert [act.label for act in looks(jobs=failing)[0].acts] == ["See the error", "Pause"]
    assert [act.label for act in looks(jobs=failing, operates=False)[0].acts] == ["See the error"]


def test_a_dead_node_and_a_clock_that_is_off_need_a_look():
    dead = world.node_view("a", state="dead", ended_at=NOW, reason="its lease ran out")
    ahead = world.node_view("b", skew_s=-2.5)
    told = looks(nodes=(ahead, dead))
    assert [entry.about for entry in told] == ["is dead", "clock is 2.5 s behind the store"]


def test_a_lost_attempt_says_nothing_of_how_long_a_job_takes():
    page = job_page(
        world.job_view("j"),
        fates=(),
        runs=(),
        history=(world.SECOND, world.LOST),
        reading=VIENNA,
        links=LINKS,
        operates=False,
        span=SlotsSpan.chosen(None, None),
        here=HERE,
    )
    assert [fact.value for fact in page.facts if fact.name == "Takes"] == ["6 m 36 s"]


def test_a_filter_that_finds_nothing_says_what_was_looked_for():
    page = made.jobs(JobsAsked(q="rolup", state="never_ran"))
    assert page.table.empty == "There is no job with “rolup” in its name, that is never ran."
    assert page.filtered


def test_a_slot_without_a_record_of_its_own_still_tells_its_fate():
    """Missed slots are recorded together: only the last of them has a record."""
    fate = SlotFate(slot=at("02:15"), status="missed", reason="no live node of its pool")
    story = story_of(fate.slot, (), reading=VIENNA, links=LINKS, job="j", fate=fate, before=at("01:15"), here=HERE)
    assert [line.what + line.rest for line in story.lines] == ["Due", "Missed: no live node of its pool"]
    assert (story.badge.tone, story.badge.word) == ("miss", "missed")
    assert story.before == LINKS.job("j", slot=at("01:15").isoformat())
    coming = story_of(at("04:15"), (), reading=VIENNA, links=LINKS, job="j")
    assert (len(coming.lines), coming.badge.word) == (1, "to come")


def test_a_busy_day_is_one_small_page_and_no_attempt_is_left_out():
    runs = [
        world.run_view("flush", NOW - timedelta(seconds=20 * n), run=f"flush@{n}", node=f"worker-{'abcd'[n % 4]}")
        for n in range(1, 4_000)
    ]
    page = made.overview(runs=runs, span_name="24h")
    source = render(page, made.frame())
    assert len(gzip.compress(source.encode())) <= 25_000
    exact = len(re.findall(r'class="bar ', source))
    together = sum(int(count) for count in re.findall(r'aria-label="(\d+) attempts', source))
    assert exact + together == len(runs)


def test_the_picture_of_a_node_that_is_gone_shows_its_last_hour():
    over = NOW - timedelta(hours=5)
    node = world.node_view("n1", state="ended", started_at=over - timedelta(hours=3), ended_at=over)
    run = world.run_view("j", over, node="n1", claimed_at=over - timedelta(minutes=20), finished_at=over)
    before = world.run_view(
        "k", over, node="n1", claimed_at=over - timedelta(hours=2), finished_at=over - timedelta(hours=1)
    )
    page = node_page(node, runs=[run, before], reading=UTC_READING, links=LINKS)
    assert "nowtag" not in page.lanes.axis
    (lane,) = page.lanes.lanes
    assert lane.svg.count('class="bar ') == 1
    assert 'width="83.33%"' not in lane.svg, "it had a lease in the hour that is shown"


def test_why_tells_instants_on_the_clocks_of_the_page():
    told = replace(world.why(), verdict="j ran its slot 2026-11-16T02:15:00Z in 1 attempt.")
    assert why_page(told, at="", reading=UTC_READING, links=LINKS).verdict == "j ran its slot 02:15:00 in 1 attempt."


def test_of_very_many_running_attempts_the_overview_lists_the_first_and_counts_all():
    page = made.overview(running_now=1_240)
    html = render_part(page, made.frame())
    assert '<span class="count">1,240</span>' in html
    assert f"{1_240 - len(page.running.rows):,} more run</a>" in html
    assert "more run</a>" not in render_part(made.overview(), made.frame())


@pytest.mark.parametrize(
    ("not_well", "words"),
    [(0, "all well"), (2, "2 not well"), (1_000, "1,000 not well"), (1_001, "more than 1,000 not well")],
)
def test_jobs_that_are_not_well_are_counted_up_to_a_bound(not_well, words):
    assert made.jobs(not_well=not_well).lead == f"52 jobs, {words}"
