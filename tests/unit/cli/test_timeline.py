"""`solocron timeline`: lanes that say the same without colours, and tables of what went from node to node."""

from __future__ import annotations

import pytest

from solocron.cli.lanes import PLAIN_MARKS, SHAPES, draw_lanes, lane_marks
from solocron.client import Client
from solocron.clock import from_us
from solocron.stores.url import make_store
from tests.unit.cli.kit import Cli, Shop
from tests.unit.client.test_timeline import MINUTE, story

HOUR = 60 * MINUTE


def test_the_picture_shows_who_ran_what_and_what_comes() -> None:
    store = make_store("memory://drawn-lanes")
    now = story(store)
    view = Client(store).timeline(from_us(now - HOUR), from_us(now + HOUR))
    lines = draw_lanes(view, width=7 + 1 + 120, marks=PLAIN_MARKS).plain()
    axis, a, c, coming, blank, legend = lines
    assert axis.count(":") >= 4
    assert a == "a".ljust(8) + " " * 40 + "=" * 6 + " " * 13 + ">>"
    assert c == "c ended " + " " * 30 + "x" * 11 + " " * 14 + "#" + " " * 4 + "|"
    assert coming.startswith("next")
    assert coming.count("o") == 1
    assert blank == ""
    assert legend == "= succeeded   > running   x lost with its node   # result refused   o to come"


def test_takeovers_and_refused_results_are_listed_with_their_fences(cli: Cli) -> None:
    story(make_store("memory://told-lanes"))
    found = cli("timeline", "--store", "memory://told-lanes", "--since", "1h")
    assert found.code == 0
    words = [line.split() for line in found.lines]
    (taken,) = [line for line in words if "j@1" in line and "7" in line and "8" in line]
    assert taken[2:] == ["j@1", "c", "7", "a", "8", "0", "s"]
    assert any(line[2:] == ["j@1", "c", "7", "succeeded"] for line in words)


def test_json_is_the_same_view(cli: Cli) -> None:
    story(make_store("memory://json-lanes"))
    found = cli("timeline", "--store", "memory://json-lanes", "--by", "job", "--json").json
    assert [lane["name"] for lane in found["lanes"]] == ["j", "k"]
    assert [(one["lost_fence"], one["taken_fence"]) for one in found["takeovers"]] == [(7, 8)]
    assert set(found) == {"start", "end", "now", "lanes", "takeovers", "to_come", "dense"}


def test_nothing_in_the_span_is_said(cli: Cli, shop: Shop) -> None:
    found = cli("timeline", "--store", shop.url, "--since", "2026-01-01T00:00Z", "--until", "2026-01-02T00:00Z")
    assert (found.code, found.out) == (0, "")
    assert "nothing happened from 2026-01-01 00:00:00" in found.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--since", "soon"], "--since: 'soon' is neither"),
        (["--since", "30d"], "not one of up to 7 days"),
        (["--by", "pool"], "argument --by: invalid choice"),
    ],
)
def test_a_wrong_option_is_one_clear_line(cli: Cli, shop: Shop, given: list[str], said: str) -> None:
    found = cli("timeline", "--store", shop.url, *given)
    assert (found.code, found.out) == (2, "")
    assert said in found.err


def test_an_output_without_the_shapes_gets_plain_characters() -> None:
    assert lane_marks("utf-8") is SHAPES
    assert lane_marks("ascii") is lane_marks(None) is PLAIN_MARKS
