"""Tables on narrow terminals: no id and no name is broken in the middle, and nothing is left out."""

from __future__ import annotations

from contextlib import redirect_stdout

import pytest

from solocron.cli import output
from solocron.cli.tables import Table, wrapped
from tests.unit.cli.test_output import Terminal

HEADERS = ["RUN", "SLOT (UTC)", "STATUS", " TRY", "NODE", "WHY"]
ROWS = [
    ("invoices:eu@0123456789abcdef", "2026-03-08 02:30:00", "failed", "2", "web-7d9f-1742-ab12cd",
     "no paper in the printer"),
    ("report@fedcba9876543210", "2026-03-08 02:31:00", "succeeded", "1", "web-7d9f-1742-ab12cd", ""),
]  # fmt: skip


def shown(width: int | None, rows: list[tuple[str, ...]] = ROWS, headers: list[str] = HEADERS) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in Table(headers, width).lines(rows)]


def test_a_table_that_fits_has_a_line_for_each_row() -> None:
    assert shown(None) == shown(200)
    assert len(shown(None)) == 3


def test_columns_that_do_not_fit_follow_below_their_row() -> None:
    assert shown(80) == [
        "RUN                           SLOT (UTC)           STATUS     TRY",
        "invoices:eu@0123456789abcdef  2026-03-08 02:30:00  failed       2",
        "    node web-7d9f-1742-ab12cd  why no paper in the printer",
        "report@fedcba9876543210       2026-03-08 02:31:00  succeeded    1",
        "    node web-7d9f-1742-ab12cd",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_nothing_is_broken_and_nothing_is_left_out(width: int) -> None:
    lines = shown(width)
    assert max(map(len, lines)) <= width
    for cell in (cell for row in ROWS for cell in row[:5]):
        assert any(cell in line for line in lines), cell
    assert "no paper in the printer" in " ".join(" ".join(lines).split())


def test_what_is_longer_than_the_terminal_stands_alone_on_its_line() -> None:
    name = "x" * 70
    assert shown(60, [(name, "a", "b")], ["JOB", "STATE", "NEXT"]) == ["JOB", name, "    state a  next b"]


def test_wide_characters_are_counted_as_the_terminal_draws_them() -> None:
    assert shown(None, [("日本", "x"), ("ab", "y")], ["A", "B"]) == ["A     B", "日本  x", "ab    y"]


def test_later_rows_keep_the_columns_of_the_first_ones() -> None:
    """A listing of any length is laid out page by page; the header comes again only where the columns change."""
    table = Table(["JOB", "STATE"], None)
    pages = [[("longer", "on")], [("a", "on")], [("the longest of all", "on")]]
    lines = ["".join(text for text, _ in line).rstrip() for page in pages for line in table.lines(page)]
    assert lines == ["JOB     STATE", "longer  on", "a       on", "the longest of all  on"]


def test_text_is_wrapped_between_words_only() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("unbreakable-id@0123", 7) == ["unbreakable-id@0123"]
    assert wrapped("", 7) == [""]


@pytest.mark.parametrize("columns", ["60", "80"])
def test_a_terminal_gets_its_own_width(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", columns)
    terminal = Terminal()
    with redirect_stdout(terminal):
        output.table(HEADERS, ROWS)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert any("invoices:eu@0123456789abcdef" in line for line in lines)


def test_a_pipe_gets_the_full_width(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    output.table(HEADERS, ROWS)
    assert len(capsys.readouterr().out.splitlines()) == 3
