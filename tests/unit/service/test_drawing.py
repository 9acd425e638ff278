"""Pictures: everything is drawn inside its lane, nothing is lost when bars are put together, no text is markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.service.draw import timeline
from solocron.service.draw.bars import DurationDot, draw_durations, draw_hours, draw_strip, draw_sum
from solocron.service.draw.slots import GridRow, SlotCell, SlotGrid, draw_grid
from solocron.service.draw.svg import shown, text
from solocron.service.draw.timeline import Bar, Lane, LaneMark, TakeoverLine, Window, axis, draw_lanes, draw_next

START = datetime(2026, 11, 16, 2, tzinfo=UTC)
WINDOW = Window(start=START, end=START + timedelta(hours=1), now=START + timedelta(minutes=50))
HOSTILE = '"><script>alert(1)</script>{{7*7}}&\u202e\x00'


def bar(minute: float, took: float | None = 1.0, **changes) -> Bar:
    start = START + timedelta(minutes=minute)
    values = {
        "run": f"job@{minute}",
        "attempt": 1,
        "start": start,
        "tone": "ok",
        "label": "job",
        "title": "job",
        "href": "/runs/x",
    }
    return Bar(**(values | {"end": None if took is None else start + timedelta(minutes=took)} | changes))


def shapes(svg: str, element: str = "rect", **attributes: str) -> list[dict[str, str]]:
    """Return the attributes of shapes; parsing fails if the markup is not well formed."""
    root = ElementTree.fromstring(svg)
    return [one.attrib for one in root.iter(element) if all(one.get(k) == v for k, v in attributes.items())]


def percent(value: str) -> float:
    return float(value.removesuffix("%"))


def test_a_bar_stands_where_its_attempt_began_and_ended():
    (picture,) = draw_lanes(WINDOW, [Lane(name="a", bars=(bar(15, 30),))])
    (found,) = [one for one in shapes(picture.svg) if one.get("class") == "bar f-ok"]
    assert (found["x"], found["width"]) == ("25%", "50%")


def test_a_running_attempt_ends_at_the_present():
    (picture,) = draw_lanes(WINDOW, [Lane(name="a", bars=(bar(30, None, tone="run"),))])
    (found,) = [one for one in shapes(picture.svg) if one.get("class") == "bar f-run"]
    assert percent(found["x"]) + percent(found["width"]) == pytest.approx(50 / 60 * 100, abs=0.02)


@given(st.lists(st.tuples(st.floats(-90, 120), st.none() | st.floats(0, 200)), max_size=40))
def test_every_bar_is_seen_and_inside_the_lane(spans):
    bars = tuple(bar(begin, took, run=f"job@{n}") for n, (begin, took) in enumerate(spans))
    (picture,) = draw_lanes(WINDOW, [Lane(name="a", bars=bars)])
    found = [one for one in shapes(picture.svg) if one.get("class", "").startswith("bar")]
    assert len(found) == len(bars)
    for one in found:
        assert percent(one["width"]) > 0
        assert 0 <= percent(one["x"]) <= percent(one["x"]) + percent(one["width"]) <= 100.02
        assert 0 <= float(one["y"]) <= float(one["y"]) + float(one["height"]) <= picture.height


@given(st.lists(st.tuples(st.floats(0, 49), st.floats(0.01, 10)), min_size=2, max_size=30))
def test_bars_of_one_row_do_not_overlap(spans):
    bars = tuple(bar(begin, took, run=f"job@{n}") for n, (begin, took) in enumerate(spans))
    placed = timeline._rows(WINDOW, Lane(name="a", bars=bars))
    rows: dict[int, list[tuple[float, float]]] = {}
    for one in placed:
        rows.setdefault(one.row, []).append((one.left, one.width))
    for row, extents in rows.items():
        if row < timeline._MOST_ROWS - 1:
            ends = [left + width for left, width in extents]
            assert all(end <= following[0] for end, following in zip(ends, extents[1:], strict=False))


def test_too_many_bars_are_put_together_and_the_sum_stays(monkeypatch):
    monkeypatch.setattr(timeline, "MOST_BARS", 100)
    bars = tuple(bar(n / 10, 0.05, run=f"job@{n}", tone="fail" if n == 7 else "ok") for n in range(480))
    (lane,) = timeline._thinned(WINDOW, [Lane(name="a", bars=bars)])
    assert len(lane.bars) <= 100
    assert len(lane.bars) + sum(sum(column.counts.values()) for column in lane.dense) == 480
    assert max(column.start for column in lane.dense) < min(one.start for one in lane.bars)
    (picture,) = draw_lanes(WINDOW, [lane])
    assert shapes(picture.svg, **{"class": "f-fail"}), "the one failure must be seen"


def test_a_takeover_leads_through_the_lanes_between_and_names_both_fences():
    lost = bar(10, 20, run="x", tone="lost")
    after = bar(30, 5, run="x", attempt=2)
    lanes = [Lane(name="a", bars=(after,)), Lane(name="b"), Lane(name="c", bars=(lost,))]
    words = ("taken over after 0.04 s", "fence …212 → …083")
    pictures = draw_lanes(
        WINDOW, lanes, [TakeoverLine(run="x", attempt=1, at=START + timedelta(minutes=30), words=words)]
    )
    for picture in pictures:
        (line,) = shapes(picture.svg, "line", **{"class": "takeover"})
        assert (line["x1"], line["x2"]) == ("50%", "50%")
    assert "takehead" in pictures[0].svg
    assert all(one in pictures[2].svg for one in words)


def test_a_takeover_below_points_down():
    lanes = [
        Lane(name="a", bars=(bar(10, 20, run="x", tone="lost"),)),
        Lane(name="b", bars=(bar(30, 5, run="x", attempt=2),)),
    ]
    first, second = draw_lanes(
        WINDOW, lanes, [TakeoverLine(run="x", attempt=1, at=START + timedelta(minutes=30), words=())]
    )
    (line,) = shapes(first.svg, "line", **{"class": "takeover"})
    assert float(line["y1"]) < float(line["y2"]) == first.height
    assert "M-4-6" in second.svg


def test_a_picture_of_the_past_has_no_present():
    past = Window(start=START, end=START + timedelta(hours=1), now=START + timedelta(hours=9))
    (picture,) = draw_lanes(past, [Lane(name="a", bars=(bar(15, 30),))])
    assert 'class="now"' not in picture.svg
    assert "now 09:00" not in axis(past, (), "now 09:00")


def test_each_lane_is_one_tab_stop():
    (picture,) = draw_lanes(WINDOW, [Lane(name="a", bars=(bar(1), bar(5), bar(9)))])
    assert [one.get("tabindex") for one in shapes(picture.svg, "a")] == [None, "-1", "-1"]


def test_no_text_becomes_markup():
    at = START + timedelta(minutes=20)
    hostile = bar(5, 40, label=HOSTILE, title=HOSTILE, href=f"/runs/{HOSTILE}", tone="lost")
    lane = Lane(name=HOSTILE, bars=(hostile,), marks=(LaneMark(at=at, kind="refused", words=HOSTILE),))
    pictures = [
        draw_lanes(WINDOW, [lane], [TakeoverLine(run=hostile.run, attempt=1, at=at, words=(HOSTILE,))])[0].svg,
        axis(WINDOW, [(at, HOSTILE)], HOSTILE),
        draw_next(WINDOW, [(WINDOW.end, 2, HOSTILE)], HOSTILE).svg,
        draw_sum([("ok", 3)], HOSTILE),
        draw_hours([{"ok": 3}], [(0, HOSTILE)], HOSTILE),
        draw_strip([(HOSTILE, HOSTILE)]),
        draw_durations(
            [DurationDot(share=0, took=1, tone="ok", title=HOSTILE)],
            p50=1,
            p95=1,
            limit=2,
            ticks=[(1, HOSTILE)],
            label=HOSTILE,
        ),
        draw_grid(
            SlotGrid(
                caption=HOSTILE,
                corner=HOSTILE,
                columns=(HOSTILE,),
                rows=(GridRow(label=HOSTILE, note=HOSTILE, cells=(SlotCell(kind="ok", label=HOSTILE, href=HOSTILE),)),),
            )
        ),
    ]
    for picture in pictures:
        root = ElementTree.fromstring(str(picture))
        assert not list(root.iter("script"))
        assert "\u202e" not in picture
        assert "\x00" not in picture
        assert r"\u202e" in picture


@given(st.text())
def test_escaped_text_holds_no_markup_and_nothing_unseen(value):
    made = text(value)
    assert not re.search(r"[<>\"']", made)
    assert not re.search(r"[\x00-\x08\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown(value))


@given(st.lists(st.tuples(st.sampled_from(["ok", "fail", "miss", "skip"]), st.integers(0, 10**9)), max_size=6))
def test_the_parts_of_the_sum_fill_the_bar_and_each_is_seen(parts):
    found = [one for one in shapes(draw_sum(parts, "all")) if "class" in one]
    assert len(found) == sum(count > 0 for _, count in parts)
    assert all(percent(one["width"]) > 0.5 for one in found)
    if found:
        assert percent(found[-1]["x"]) + percent(found[-1]["width"]) == pytest.approx(100, abs=0.1)


def test_one_cell_of_the_grid_is_a_tab_stop():
    cells = tuple(SlotCell(kind="ok", label=str(n), href=f"/jobs/x?slot={n}", chosen=n == 3) for n in range(5))
    table = draw_grid(
        SlotGrid(caption="c", corner="day", columns=tuple("12345"), rows=(GridRow(label="Mon", cells=cells),))
    )
    links = shapes(table, "a")
    assert [one["href"] for one in links if "tabindex" not in one] == ["/jobs/x?slot=3"]
    assert links[3]["aria-current"] == "true"


def test_the_number_of_a_slot_to_come_is_never_cut_off_at_the_edge():
    svg = str(draw_next(WINDOW, [(WINDOW.end, 2, "at the edge"), (WINDOW.now, 3, "now")], "").svg)
    edge, now = (svg.partition(f'aria-label="{one}"')[2].partition("</g>")[0] for one in ("at the edge", "now"))
    assert 'text-anchor="end">2<' in edge
    assert 'x="100%"' not in edge
    assert '<text x="8" y="4">3<' in now
