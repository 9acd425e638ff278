"""`solocron plan`: the picture at 60 and 80 columns, what is crowded, what is left out, and the JSON."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from solocron import Scheduler
from solocron.cli.heatmap import BLOCKS, PLAIN, draw, levels, palette, show
from solocron.clock import SECOND, to_us
from tests.unit.cli.kit import Cli, Shop

HOUR = 3_600 * SECOND
# Far ahead: jobs are added now, and slots before now are decided.
FROM = ("--from", "2040-01-03T07:10:00Z")


@pytest.fixture
def busy(shop: Shop) -> Shop:
    for n in range(6):
        shop.scheduler.add(f"nightly-{n}", "invoices", "0 2 * * *", limit="db-heavy:2")
    shop.scheduler.add("vienna", "invoices", "30 2 * * *", tz="Europe/Vienna")
    return shop


def test_the_picture_has_a_line_for_each_day_and_two_characters_for_each_hour(cli: Cli, busy: Shop) -> None:
    lines = cli("plan", "--store", busy.url, *FROM).lines
    assert lines[0] == "369 runs of 10 jobs in 7 days from Tue 2040-01-03 07:10 +00:00, UTC"
    assert lines[2].split() == ["00", "03", "06", "09", "12", "15", "18", "21", "runs"]
    assert lines[3] == f"Tue 2040-01-03 {' ' * 14}░░{'▒▒' * 16}{'':>7}33"
    days = [line[:14] for line in lines[3:10]]
    assert days == [f"{day} 2040-01-0{n}" for n, day in enumerate(["Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Mon"], 3)]
    assert lines[4][15:][2 * 2 : 2 * 3] == "██"


@pytest.mark.parametrize(("columns", "label"), [("80", "Wed 2040-01-04 "), ("60", "Wed  4 "), ("20", "Wed  4 ")])
def test_no_line_is_longer_than_the_terminal(
    cli: Cli, busy: Shop, monkeypatch: pytest.MonkeyPatch, columns: str, label: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = cli("plan", "--store", busy.url, *FROM, "--days", "2").lines
    assert max(map(len, lines)) <= max(60, int(columns))
    assert any(line.startswith(label) for line in lines)


def test_a_herd_a_limit_and_a_clock_change_are_said(cli: Cli, busy: Shop) -> None:
    answer = cli("plan", "--store", busy.url, "--from", "2040-10-27T12:00:00Z", "--days", "2")
    assert answer.code == 0
    text = " ".join(answer.out.split())
    assert (
        "8 jobs in the minute Sun 2040-10-28 02:00 +00:00 (once, 8 runs in one second): broken, invoices, nightly-0"
        in text
    )
    assert "Quieter: 02:02, 0 runs in that minute." in text
    assert "vienna: 2040-10-28: 02:30 happens twice, runs once, the first time." in text
    assert "6 runs fall due at Sun 2040-10-28 02:00 +00:00, and 2 may run." in text
    assert "No run on record of nightly-0" in text


def test_durations_on_record_tell_how_long_runs_wait(cli: Cli) -> None:
    scheduler = Scheduler("memory://slow-plan", node="kitchen")

    @scheduler.cron("0 3 * * *", name="slow", limit="one:1")
    def slow() -> None:
        scheduler._core.store.shift_clock(600 * SECOND)  # ten minutes by the store's clock

    scheduler.tick()
    scheduler.trigger("slow")
    scheduler.tick()
    scheduler.add("second", "slow", "1 3 * * *", limit="one:1", start_within="5m")
    (limit,) = cli("plan", "--store", "memory://slow-plan", "--from", "2040-01-01", "--json").json["limits"]
    assert (limit["limit"], limit["runs"], limit["unknown"]) == ("one", 14, ["second"])
    assert (limit["waiting"], limit["missed"]) == (7, 7)
    assert limit["longest_wait"] == pytest.approx(9 * 60, abs=5)
    text = " ".join(cli("plan", "--store", "memory://slow-plan", "--from", "2040-01-01").out.split())
    assert "one:1, second, slow: 7 of 14 runs wait for a permit" in text
    assert "7 would be missed: they wait longer than start_within." in text
    scheduler.stop()


def test_what_is_paused_disabled_or_known_only_to_code_is_left_out_and_said(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("report")
    shop.scheduler.add("off", "invoices", "0 3 * * *", enabled=False)
    told = cli("plan", "--store", shop.url, "--json").json
    assert told["left_out"] == [{"job": "off", "why": "disabled"}, {"job": "report", "why": "paused"}]
    assert told["jobs"] == 2
    assert "report: paused" in cli("plan", "--store", shop.url).out
    shop.scheduler.pause_all(match="inv*")
    told = cli("plan", "--store", shop.url, "--json").json
    assert {"job": "invoices", "why": "paused with jobs matching inv*"} in told["left_out"]


def test_a_pause_with_an_end_counts_from_its_end(cli: Cli, shop: Shop) -> None:
    before = cli("plan", "--store", shop.url, "--json").json["runs"]
    shop.scheduler.pause_all(match="invoices", until=datetime.now(UTC) + timedelta(days=1))
    assert 23 <= before - cli("plan", "--store", shop.url, "--json").json["runs"] <= 25
    shop.scheduler.resume_all(match="invoices")
    shop.scheduler.pause("invoices", until=datetime.now(UTC) + timedelta(days=1))
    assert 23 <= before - cli("plan", "--store", shop.url, "--json").json["runs"] <= 25


def test_json_has_every_hour_and_all_that_the_text_says(cli: Cli, busy: Shop) -> None:
    told = cli("plan", "--store", busy.url, *FROM, "--tz", "Asia/Kolkata", "--days", "1", "--json").json
    assert (told["from"], told["until"], told["zone"]) == (
        "2040-01-03T07:10:00Z",
        "2040-01-03T18:30:00Z",
        "Asia/Kolkata",
    )
    assert told["hours"][0] == {"at": "2040-01-03T06:30:00Z", "runs": 0}
    assert sum(hour["runs"] for hour in told["hours"]) == told["runs"]
    assert told["herds"] == []
    later = cli("plan", "--store", busy.url, *FROM, "--days", "3", "--json").json
    (herd,) = later["herds"]
    assert (herd["at"], herd["times"], herd["runs"]) == ("2040-01-04T02:00:00Z", 2, 8)
    assert herd["quieter"] == {"minutes_later": 2, "runs": 0}
    assert later["herds_until"] == later["until"]


def test_one_job_is_no_herd(cli: Cli, shop: Shop) -> None:
    answer = cli("plan", "--store", shop.url, "--herd", "1")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("solocron plan: argument --herd: 1 job is not a herd; give a whole number from 2 up\n")


def test_a_smaller_herd_can_be_asked_for(cli: Cli, shop: Shop) -> None:
    assert cli("plan", "--store", shop.url, *FROM, "--json").json["herds"] == []
    (herd,) = cli("plan", "--store", shop.url, *FROM, "--herd", "2", "--json").json["herds"]
    assert herd["jobs"] == ["broken", "invoices"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--days", "0"), "--days"),
        (("--days", "93"), "at most 92 days"),
        (("--days", "a week"), "--days"),
        (("--tz", "Europe/Viena"), "did you mean 'Europe/Vienna'"),
        (("--from", "tomorrow"), "is not an instant"),
        (("--herd", "-1"), "--herd"),
    ],
)
def test_bad_input_is_one_clear_message(cli: Cli, shop: Shop, given: tuple[str, str], said: str) -> None:
    answer = cli("plan", "--store", shop.url, *given)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_it_makes_no_store(cli: Cli, elsewhere: Path) -> None:
    assert cli("plan").code == 3
    assert list(elsewhere.iterdir()) == []


# --- the picture -----------------------------------------------------------------------------------------------------


def test_levels_split_the_different_numbers_and_the_busiest_hour_is_the_darkest() -> None:
    assert levels([]) == levels([0, 0]) == []
    assert levels([7, 7, 0]) == [7]
    assert levels([1, 2, 3, 4, 1_000]) == [2, 3, 4, 1_000]
    assert levels([12, 21]) == [12, 21]
    for most in (1, 2, 3, 50, 10_000):
        picture = draw({0: most, HOUR: 1}, "UTC", width=80, marks=BLOCKS)
        assert picture.plain()[1][15:17] == "██", most


def test_the_legend_names_every_shade_of_the_picture() -> None:
    load = {hour * HOUR: 2**hour for hour in range(16)}
    *lines, legend = draw(load, "UTC", width=60, marks=PLAIN).plain()
    assert legend == "runs an hour, up to:  -- 8  ++ 128  ## 2.0k  @@ 33k"
    assert {shade for shade in PLAIN.shades if shade in lines[1]} == set(PLAIN.shades)
    assert len(legend) <= 60


def test_numbers_of_the_legend_that_would_look_the_same_are_written_out() -> None:
    *_, legend = draw({0: 3_000, HOUR: 3_001}, "UTC", width=60, marks=PLAIN).plain()
    assert legend == "runs an hour, up to:  -- 3,000  @@ 3,001"


def test_an_hour_that_the_clocks_repeat_is_one_cell() -> None:
    fold = to_us(datetime(2026, 11, 1, 5, tzinfo=UTC))  # 01:00 in New York, and an hour later again
    picture = draw({fold: 1, fold + HOUR: 2}, "America/New_York", width=80, marks=PLAIN).plain()
    assert len([line for line in picture if line.startswith("Sun")]) == 1
    assert picture[1].split()[-1] == "3"


def test_plain_characters_are_used_where_the_encoding_has_no_blocks() -> None:
    assert palette("utf-8") is BLOCKS
    assert palette("ascii") is PLAIN
    assert palette(None) is PLAIN
    assert palette("no-such-encoding") is PLAIN


@pytest.mark.parametrize("no_color", [True, False])
def test_colours_are_added_on_a_terminal_and_change_no_character(
    monkeypatch: pytest.MonkeyPatch, no_color: bool
) -> None:
    class Tty(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    screen = Tty()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    picture = draw({hour * HOUR: hour for hour in range(48)}, "UTC", width=60, marks=BLOCKS)
    show(picture)
    written = screen.getvalue()
    assert ("\x1b[3" in written) is not no_color
    shown = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", written).splitlines()]
    assert shown == picture.plain()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--from", "9999-12-31"), "--from: '9999-12-31' is too far away: 7 days from then are not in the calendar."),
        (("--from", "0001-01-01", "--tz", "Asia/Tokyo"), "--from: '0001-01-01' is too far away"),
        (
            ("--from", "1999-01-01"),
            "--from: the 7 days from '1999-01-01' on are over; `solocron runs --since` has them.",
        ),
        (("--days", "0"), "argument --days: '0' is not a whole number from 1 up"),
        (("--days", "93"), "--days 93: at most 92 days are planned."),
        (("--from", "yesterday"), "--from: 'yesterday' is not an instant"),
        (("--tz", "Mars/Olympus"), "unknown time zone 'Mars/Olympus'"),
    ],
)
def test_bad_input_is_one_line(cli: Cli, shop: Shop, given: tuple[str, ...], said: str) -> None:
    answer = cli("plan", "--store", shop.url, *given)
    assert (answer.code, answer.out) == (2, "")
    first, following = answer.err.splitlines()
    assert said in first
    assert following == "next: solocron plan --help"


def test_days_of_which_some_are_over_are_planned(cli: Cli, shop: Shop) -> None:
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    assert cli("plan", "--store", shop.url, "--from", yesterday).code == 0


def test_a_million_runs_a_day_do_not_touch_the_picture() -> None:
    picture = draw({hour * HOUR: 54_000 for hour in range(24)}, "UTC", width=80, marks=BLOCKS)
    day = next(line for line in picture.plain() if "1970-01-01" in line)
    assert day.endswith("██     1.3M")
