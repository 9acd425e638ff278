"""--by and --note: who did it, and why, is kept and shown."""

from __future__ import annotations

import pytest

from tests.unit.cli.kit import Cli, Shop


def test_a_trigger_is_shown_with_its_author_and_note(cli: Cli, shop: Shop) -> None:
    run = cli("trigger", "invoices", "--by", "kim", "--note", "file came late", "--store", shop.url).out.strip()
    shop.tick()
    (line,) = [line for line in cli("runs", "--store", shop.url).lines if run in line]
    assert "asked by kim: file came late" in line
    shown = dict(line.split("  ", 1) for line in cli("show", run, "--store", shop.url).lines if "  " in line)
    assert (shown["asked by"].strip(), shown["note"].strip()) == ("kim", "file came late")
    found = cli("show", run, "--store", shop.url, "--json").json
    assert (found["asked_by"], found["note"]) == ("kim", "file came late")


def test_the_author_is_the_user_of_the_terminal(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "robin")
    run = cli("trigger", "invoices", "--at", "1h", "--store", shop.url).out.strip()
    assert shop.scheduler.get_run(run).asked_by == "robin"
    cli("cancel", run, "--note", "not needed", "--store", shop.url)
    assert shop.scheduler.get_run(run).reason == "cancelled by robin: not needed"


def test_a_backfill_with_a_key_is_one_and_says_who_asked(cli: Cli, shop: Shop) -> None:
    shop.later(3 * 3600)
    shop.tick()
    words = ("backfill", "invoices", "3h", "0s", "--key", "k", "--by", "kim", "--note", "audit", "--store", shop.url)
    first, again = cli(*words, "--json").json, cli(*words, "--json").json
    assert first["id"] == again["id"]
    assert (first["asked_by"], first["note"]) == ("kim", "audit")
    assert len(shop.scheduler.backfills()) == 1


def test_a_backfill_of_what_did_not_run_says_so_where_nothing_is_left(cli: Cli, shop: Shop) -> None:
    shop.later(3 * 3600)
    shop.tick()
    words = ("backfill", "invoices", "3h", "0s", "--only", "missed", "--store", shop.url)
    assert cli(*words).code == 0
    shop.tick()
    again = cli(*words)
    assert (again.code, again.out) == (0, "")
    assert "every slot of invoices there ran already; nothing was asked for" in again.err
    wrong = cli("backfill", "invoices", "3h", "0s", "--only", "failed", "--store", shop.url)
    assert wrong.code == 2
    assert "--only: invalid choice: 'failed'" in wrong.err


def test_show_says_who_resumed_a_job(cli: Cli, shop: Shop) -> None:
    cli("pause", "invoices", "--store", shop.url)
    cli("resume", "invoices", "--by", "kim", "--note", "all is well", "--store", shop.url)
    shown = dict(line.split("  ", 1) for line in cli("show", "invoices", "--store", shop.url).lines if "  " in line)
    assert shown["resumed"].strip().endswith(" UTC, by kim: all is well")
    found = cli("show", "invoices", "--store", shop.url, "--json").json
    assert (found["resumed_by"], found["resumed_note"]) == ("kim", "all is well")
    (entry,) = [one for one in cli("audit", "--store", shop.url, "--json").json if one["act"] == "resume"]
    assert (entry["who"], entry["note"]) == ("kim", "all is well")


def test_a_resume_and_a_removal_say_who(cli: Cli, shop: Shop) -> None:
    cli("pause", "invoices", "--note", "audit", "--store", shop.url)
    shop.later(2 * 3600)
    cli("resume", "invoices", "--by", "kim", "--note", "done", "--store", shop.url)
    assert shop.scheduler.runs("invoices", status="skipped")[0].reason == "paused: audit; resumed by kim: done"
    shop.scheduler.add("data", "invoices", "0 3 * * *")
    run = cli("trigger", "data", "--at", "1h", "--store", shop.url).out.strip()
    assert cli("remove", "data", "--by", "kim", "--store", shop.url).code == 0
    assert shop.scheduler.get_run(run).reason == "the job was removed by kim"


@pytest.mark.parametrize(
    "words",
    [
        ("trigger", "invoices"),
        ("cancel", "invoices@1"),
        ("resume", "invoices"),
        ("rerun", "invoices", "--failed-since", "1h"),
        ("backfill", "invoices", "2h", "1h"),
        ("remove", "invoices"),
    ],
)
def test_a_note_that_is_too_long_is_one_line_and_changes_nothing(cli: Cli, shop: Shop, words: tuple[str, ...]) -> None:
    before = shop.scheduler.jobs(), shop.scheduler.runs()
    answer = cli(*words, "--note", "x" * 501, "--store", shop.url)
    assert answer.code == 2
    assert "at most 500 characters; nothing was" in answer.err
    assert "Traceback" not in answer.err
    assert (shop.scheduler.jobs(), shop.scheduler.runs()) == before
