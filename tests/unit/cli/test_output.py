"""Tables, colours, times: plain and aligned for pipes, coloured on a terminal unless NO_COLOR says otherwise."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta, timezone

import pytest

from solocron.cli import output
from solocron.cli.moments import instant, later, local, span, utc
from solocron.clock import to_us
from solocron.errors import InvalidError
from tests.required import require_module

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """To be written to with `redirect_stdout`: pytest's capture takes stdout back between fixture and test."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal()


def test_a_plain_table_is_aligned_and_has_no_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["JOB", " TRY", "WHY"], [("a", "1", "x"), ("longer", "12", "")])
    assert capsys.readouterr().out == "JOB     TRY  WHY\na         1  x\nlonger   12\n"


def test_on_a_terminal_statuses_are_coloured(terminal: Terminal) -> None:
    require_module("rich")
    with redirect_stdout(terminal):
        output.table(["STATUS"], [("failed",)])
    assert "\x1b[1;31mfailed" in terminal.getvalue()


def test_a_sentence_keeps_to_the_width_of_a_terminal_and_is_one_line_in_a_pipe(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    with redirect_stdout(terminal):
        output.tell("invoices has not run its slot yet")
    assert terminal.getvalue() == "invoices has not run\nits slot yet\n"
    output.tell("invoices has not run its slot yet")
    assert capsys.readouterr().out == "invoices has not run its slot yet\n"


def test_no_color_is_honoured(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(terminal):
        output.table(["STATUS"], [("failed",)])
        output.labelled("FAIL", "lease")
    assert "\x1b[31m" not in terminal.getvalue()
    assert "1;31" not in terminal.getvalue()
    assert "failed" in terminal.getvalue()


def test_a_dumb_terminal_gets_plain_text(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with redirect_stdout(terminal):
        output.labelled("OK", "fine")
    assert terminal.getvalue() == "OK    fine\n"


def test_a_line_with_a_level_is_indented_where_it_does_not_fit(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "30")
    with redirect_stdout(terminal):
        output.labelled("WARN", "folder: every user may create files in it")
    assert terminal.getvalue() == "WARN  folder: every user may\n      create files in it\n"


def test_without_rich_a_terminal_gets_plain_text(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    with redirect_stdout(terminal):
        output.table(["A", "B"], [("1", "2")])
    assert terminal.getvalue() == "A  B\n1  2\n"


def test_users_words_are_no_markup(terminal: Terminal) -> None:
    require_module("rich")
    with redirect_stdout(terminal):
        output.table(["WHY"], [("[red]not a colour[/red]",)])
    assert "[red]not a colour[/red]" in terminal.getvalue()


def test_waiting_is_said_once_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with output.waiting("for paper"):
        pass
    assert capsys.readouterr().err == "for paper\n"


def test_waiting_turns_a_spinner_on_a_terminal(terminal: Terminal) -> None:
    require_module("rich")
    with redirect_stderr(terminal), output.waiting("for [paper]"):
        pass
    assert "for [paper]" in terminal.getvalue()


def test_pairs_indent_texts_of_several_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.pairs([("error", "one\ntwo\x07"), ("id", "7")])
    assert capsys.readouterr().out == "error  one\n       two\\x07\nid     7\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(hours=11, minutes=37, seconds=5), "11 h 37 m"),
        (timedelta(hours=12, seconds=15), "12 h"),
        (timedelta(days=3, hours=4), "3 d 4 h"),
        (timedelta(seconds=15), "15 s"),
        (timedelta(seconds=75), "1 m 15 s"),
        (timedelta(microseconds=1_800), "1.8 ms"),
        (timedelta(seconds=1.5), "1.5 s"),
        (timedelta(seconds=-90), "-1 m 30 s"),
        (timedelta(), "0 s"),
        (2.0, "2 s"),
    ],
)
def test_spans_are_readable(value: timedelta | float, text: str) -> None:
    assert span(value) == text


def test_utc_leaves_the_date_out_beside_the_same_date() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=-5)))
    assert utc(NOON, beside=there) == "12:00"
    midnight = datetime(2026, 3, 8, 2, tzinfo=UTC)
    assert utc(midnight, beside=midnight.astimezone(timezone(timedelta(hours=-5)))) == "2026-03-08 02:00"
    assert utc(None) == "-"
    assert local(there) == "Sun 2026-03-08 07:00 -05:00"


def test_an_instant_without_an_offset_is_read_in_the_zone_at_hand() -> None:
    assert instant("2026-03-08T12:00", "--from") == NOON
    assert instant("2026-03-08 12:00", "--from", timezone(timedelta(hours=2))) == NOON - timedelta(hours=2)
    assert instant("2026-03-08T12:00Z", "--from", timezone(timedelta(hours=2))) == NOON


def test_later_is_a_time_from_now_or_an_instant() -> None:
    assert later("90s", "--at", to_us(NOON)) == NOON + timedelta(seconds=90)
    assert later("2026-03-08T12:00Z", "--at", 0) == NOON
    with pytest.raises(InvalidError, match="too far away"):
        later("99999999w", "--at", to_us(NOON))
