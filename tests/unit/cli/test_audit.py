"""`solocron audit`: what was asked for on the command line is on record, also what was refused."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop


def test_every_act_is_on_record_newest_first(cli: Cli, shop: Shop) -> None:
    by = ("--by", "ana", "--store", shop.url)
    cli("pause", "invoices", "--note", "schema move", *by)
    cli("resume", "invoices", *by)
    run = cli("trigger", "invoices", *by).lines[0]
    cli("cancel", run, *by)
    cli("pause", "--pool", "default", *by)
    cli("resume", "--pool", "default", *by)
    cli("trigger", "invoices", "--shard", "eu", *by)
    found = cli("audit", "--store", shop.url, "--json").json
    assert [(one["act"], one["subject"]) for one in found[::-1]] == [
        ("pause", "invoices"),
        ("resume", "invoices"),
        ("trigger", "invoices"),
        ("cancel", run),
        ("pause", "--pool default"),
        ("resume", "--pool default"),
        ("trigger", "invoices"),
    ]
    assert {one["result"] for one in found[1:]} == {"done"}
    assert "shard" in found[0]["result"]
    assert {(one["who"], one["via"]) for one in found} == {("ana", "cli")}


def test_entries_are_found_by_who_and_what(cli: Cli, shop: Shop) -> None:
    cli("pause", "invoices", "--by", "ana", "--note", "schema move", "--store", shop.url)
    cli("resume", "invoices", "--by", "bo", "--store", shop.url)
    assert "schema move" in cli("audit", "--who", "ana", "--store", shop.url).lines[1]
    assert len(cli("audit", "--subject", "invoices", "--limit", "1", "--store", shop.url, "--json").json) == 1
    answer = cli("audit", "--who", "eve", "--store", shop.url)
    assert (answer.code, answer.err) == (0, "there is no such entry in the audit of namespace 'default'\n")


def test_an_empty_audit_says_so(cli: Cli, shop: Shop) -> None:
    answer = cli("audit", "--store", shop.url)
    assert (answer.code, answer.err) == (0, "there is no entry yet in the audit of namespace 'default'\n")


def test_a_wrong_name_writes_nothing(cli: Cli, shop: Shop) -> None:
    assert cli("trigger", "nothing", "--store", shop.url).code == 3
    assert cli("cancel", "nothing@0123", "--store", shop.url).code == 3
    assert cli("resume", "--all", "--store", shop.url).code == 0, "nothing stands, and it says so"
    shop.scheduler.pause_all(pool="etl")
    assert cli("resume", "--pool", "elt", "--store", shop.url).code == 3
    assert cli("audit", "--store", shop.url, "--json").json == []


def test_a_preview_is_no_act(cli: Cli, shop: Shop) -> None:
    cli("resume", "invoices", "--dry-run", "--store", shop.url)
    cli("backfill", "invoices", "3h", "1h", "--dry-run", "--store", shop.url)
    assert cli("audit", "--store", shop.url, "--json").json == []


def test_what_changes_more_than_a_run_is_on_record_too(cli: Cli, shop: Shop) -> None:
    by = ("--by", "ana", "--store", shop.url)
    with shop.scheduler.lock("till"):
        assert cli("locks", "--release", "till", "--reason", "stuck", *by).code == 0
    assert cli("alarms", "silence", "late", "--until", "1h", "--note", "known", *by).code == 0
    assert cli("alarms", "lift", "late", "--note", "over", *by).code == 0
    assert cli("adopt", "invoices", "--note", "rolled back", *by).code == 0
    assert cli("adopt", "--all", *by).code == 0
    assert cli("restored", "--note", "from the backup of noon", *by).code == 0
    assert cli("remove", "report", "--note", "not needed", *by).code == 0
    found = cli("audit", "--store", shop.url, "--json").json
    assert [(one["act"], one["subject"], one["note"], one["result"]) for one in found[::-1]] == [
        ("release", "till", "stuck", "done"),
        ("silence", "late", "known", "done"),
        ("lift", "late", "over", "done"),
        ("adopt", "invoices", "rolled back", "done"),
        ("adopt", "--all", None, "done"),
        ("restored", "namespace default", "from the backup of noon", "done"),
        ("remove", "report", "not needed", "done"),
    ]


def test_what_was_refused_is_on_record_and_a_wrong_name_is_not(cli: Cli, shop: Shop) -> None:
    with shop.scheduler.lock("till"):
        pass
    for argv in (
        ["locks", "--release", "till", "--reason", "x"],
        ["locks", "--release", "no such lock", "--reason", "x"],
        ["remove", "nothing"],
        ["adopt", "nothing"],
        ["alarms", "lift", "failing"],
    ):
        assert cli(*argv, "--store", shop.url).code in (3, 4)
    found = cli("audit", "--store", shop.url, "--json").json
    assert [(one["act"], one["result"][:24]) for one in found[::-1]] == [
        ("release", "lock 'till' is not held;"),
        ("lift", "there is no silence 'fai"),
    ]
