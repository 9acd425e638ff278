"""`solocron explain`: an expression in words."""

from __future__ import annotations

from tests.unit.cli.kit import Cli


def test_explain_says_it_in_words_with_the_next_slot_and_notes(cli: Cli) -> None:
    answer = cli("explain", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-11-15T19:53:00Z")
    assert answer.lines == [
        "At 02:30 every day, America/New_York",
        "next  Mon 2026-11-16 02:30 -05:00   in 11 h 37 m    (07:30 UTC)",
        "note  2027-03-14: 02:30 does not exist, runs once at 03:00.",
    ]


def test_explain_as_json(cli: Cli) -> None:
    answer = cli("explain", "*/7 * * * *", "--from", "2026-01-01", "-n", "2", "--json")
    assert answer.json == {
        "expression": "*/7 * * * *",
        "zone": "UTC",
        "description": answer.json["description"],
        "next": ["2026-01-01T00:07:00Z", "2026-01-01T00:14:00Z"],
        "notes": ["the minute field '*/7': 7 does not divide 60, so the last interval is a shorter one."],
    }
    assert answer.json["description"].endswith(", UTC")


def test_explain_refuses_what_cannot_be_read(cli: Cli) -> None:
    answer = cli("explain", "60 * * * *")
    assert (answer.code, answer.out) == (2, "")
    assert "minute" in answer.err
