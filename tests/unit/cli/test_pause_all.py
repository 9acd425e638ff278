"""`solocron pause` and `resume` with --all, --pool and --match, and where a pause of many jobs is shown."""

from __future__ import annotations

import pytest

from tests.unit.cli.kit import Cli, Shop


def test_pause_all_says_how_many_jobs_and_how_to_lift_it(cli: Cli, shop: Shop) -> None:
    answer = cli("pause", "--all", "--by", "kim", "--note", "moving the database", "--store", shop.url)
    assert (answer.code, answer.out) == (0, "all jobs (3 now): paused until `solocron resume --all`\n")
    (found,) = shop.scheduler.pauses()
    assert (found.scope, found.by, found.note, found.until) == ("all jobs", "kim", "moving the database", None)
    lifted = cli("resume", "--all", "--store", shop.url)
    assert (lifted.code, lifted.out) == (0, "all jobs (3 now): not paused any more\n")
    assert shop.scheduler.pauses() == []


@pytest.mark.parametrize(
    ("flag", "value", "scope", "option"),
    [
        ("--pool", "default", "pool default", "--pool default"),
        ("--match", "inv*", "jobs matching inv*", "--match 'inv*'"),
    ],
)
def test_a_scope_is_named_as_the_command_that_lifts_it(
    cli: Cli, shop: Shop, flag: str, value: str, scope: str, option: str
) -> None:
    answer = cli("pause", flag, value, "--store", shop.url)
    assert answer.out.startswith(f"{scope} (")
    assert answer.out.endswith(f"now): paused until `solocron resume {option}`\n")
    assert cli("resume", flag, value, "--store", shop.url, "--json").json["scope"] == scope


def test_status_has_it_on_top(cli: Cli, shop: Shop) -> None:
    cli("pause", "--all", "--by", "kim", "--note", "audit", "--triggers", "--store", shop.url)
    answer = cli("status", "--store", shop.url)
    assert answer.code == 0
    assert answer.lines[0].startswith("PAUSED")
    assert "all jobs, what was requested too since" in answer.lines[0]
    assert answer.lines[0].endswith("by kim: audit; lift: solocron resume --all")
    (found,) = cli("status", "--store", shop.url, "--json").json["pauses"]
    assert (found["option"], found["by"], found["note"], found["triggers"]) == ("--all", "kim", "audit", True)


def test_jobs_and_next_and_doctor_say_it(cli: Cli, shop: Shop) -> None:
    cli("pause", "--match", "inv*", "--by", "kim", "--note", "audit", "--store", shop.url)
    rows = {line.split()[0]: line for line in cli("jobs", "--store", shop.url).lines[1:]}
    assert "paused" in rows["invoices"]
    assert "with jobs matching inv* by kim: audit" in rows["invoices"]
    assert "paused" not in rows["broken"]
    found = {job["name"]: job for job in cli("jobs", "--store", shop.url, "--json").json}
    assert [one["scope"] for one in found["invoices"]["pauses"]] == ["jobs matching inv*"]
    assert found["broken"]["pauses"] == []
    assert "invoices is paused: these slots will be skipped" in cli("next", "invoices", "--store", shop.url).err
    said = cli("doctor", "--store", shop.url).out
    assert "jobs matching inv* (1 now) paused" in said
    assert "solocron resume --match 'inv*'" in said


def test_a_resume_says_what_stays_paused(cli: Cli, shop: Shop) -> None:
    for scope in (("--all",), ("--match", "inv*")):
        cli("pause", *scope, "--store", shop.url)
    cli("pause", "broken", "--store", shop.url)
    plan = cli("resume", "--all", "--dry-run", "--store", shop.url)
    assert "3 jobs would go on with their next slot; 0 waiting runs would start" in plan.out
    assert len(shop.scheduler.pauses()) == 2
    answer = cli("resume", "--all", "--store", shop.url)
    assert "invoices stays paused with jobs matching inv*" in answer.err
    assert "broken stays paused by itself" in answer.err
    assert "report" not in answer.err


def test_a_job_that_is_resumed_under_a_pause_of_many_says_so(cli: Cli, shop: Shop) -> None:
    cli("pause", "invoices", "--store", shop.url)
    cli("pause", "--all", "--store", shop.url)
    answer = cli("resume", "invoices", "--store", shop.url)
    assert "invoices is not paused by itself any more; it goes on when all jobs may run again" in answer.out


def test_a_scope_that_is_not_paused_names_those_that_are(cli: Cli, shop: Shop) -> None:
    nothing = cli("resume", "--pool", "etl", "--store", shop.url)
    assert (nothing.code, nothing.out) == (0, "no pause of many jobs stands: nothing was changed\n")
    cli("pause", "--pool", "elt", "--store", shop.url)
    answer = cli("resume", "--pool", "etl", "--store", shop.url)
    assert answer.code == 3
    assert "nothing was changed. What stands: pool elt (`solocron resume --pool elt`)" in answer.err


def test_a_scope_without_a_job_is_paused_and_said(cli: Cli, shop: Shop) -> None:
    answer = cli("pause", "--pool", "etl", "--store", shop.url)
    assert answer.code == 0
    assert "no job is among pool etl now" in answer.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "give one of JOB, --all, --pool and --match; nothing was paused"),
        (("invoices", "--all"), "give one of JOB, --all, --pool and --match; nothing was paused"),
        (("--all", "--match", "x"), "give one of JOB, --all, --pool and --match; nothing was paused"),
        (("--match", ""), "match='' cannot be used"),
        (("--match", "inv["), "no name can match 'inv[': its '[' is not closed; nothing was paused."),
        (("--match", "[z-a]*"), "no name can match '[z-a]*': [z-a] fits no character of a name; nothing was paused."),
        (("--match", "größe*"), "no name can match 'größe*': no name has 'ö'; nothing was paused."),
        (("--all", "--until", "2001-01-01"), "is in the past; nothing was paused"),
        (("--all", "--until", "soon"), "--until: 'soon' is neither an instant"),
        (("--all", "--note", "x" * 501), "at most 500 characters; nothing was paused"),
        (("invoices", "--triggers"), "--triggers goes with --all, --pool or --match; nothing was paused"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(cli: Cli, shop: Shop, words: tuple[str, ...], why: str) -> None:
    answer = cli("pause", *words, "--store", shop.url)
    assert answer.code == 2
    assert why in answer.err
    assert "Traceback" not in answer.err
    assert shop.scheduler.pauses() == []
    assert shop.scheduler.get_job("invoices").paused is None


def test_resume_needs_one_scope(cli: Cli, shop: Shop) -> None:
    answer = cli("resume", "--store", shop.url)
    assert answer.code == 2
    assert "give one of JOB, --all, --pool and --match; nothing was resumed" in answer.err


def test_a_pause_of_an_earlier_release_that_covers_nothing_can_be_lifted(
    cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("solocron.client.scoped_pauses.why_unmatchable", lambda pattern: None)
        shop.scheduler.pause_all(match="[")
    assert cli("resume", "--match", "[", "--store", shop.url).code == 0
    assert shop.scheduler.pauses() == []


def test_what_is_requested_meanwhile_is_said_to_wait(cli: Cli, shop: Shop) -> None:
    """A person who triggers a job at 3 a.m. must not look at a run that never starts and says nothing."""
    cli("pause", "--all", "--by", "kim", "--note", "audit", "--triggers", "--store", shop.url)
    with shop.scheduler:
        answer = cli("trigger", "invoices", "--store", shop.url)
        said = "what is requested of invoices waits while a pause stands (all jobs by kim: audit); lift: "
        assert answer.err == f"{said}solocron resume --all\n"
        shown = cli("show", answer.out.strip(), "--store", shop.url)
        assert shown.err == answer.err
        assert ["waits", "for", "the", "pause", "of", "all", "jobs"] in [
            line.split()[:7] for line in shown.out.splitlines()
        ]
        cli("resume", "--all", "--store", shop.url)
        assert cli("trigger", "invoices", "--store", shop.url).err == ""


def test_a_pause_of_the_schedule_alone_keeps_no_trigger(cli: Cli, shop: Shop) -> None:
    cli("pause", "--all", "--store", shop.url)
    with shop.scheduler:
        assert cli("trigger", "invoices", "--store", shop.url).err == ""
