"""`solocron alarms`: all that is wrong, what was told of it, and silences that always end."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from solocron import Scheduler
from tests.unit.cli.kit import Cli, moment

numbers = itertools.count()


def ill(jobs: int = 1, *, owner: str | None = None, runbook: str | None = None, **options: Any) -> str:
    """A namespace whose jobs have failed once, and a node that has told of it."""
    url = f"memory://ill-{next(numbers)}"
    scheduler = Scheduler(url, enabled=True, node="kitchen")
    scheduler.alarms(every="1ms", failing=1, **options)

    def fail() -> None:
        raise ValueError("no paper")

    for number in range(jobs):
        scheduler.every("1h", name=f"job-{number}", owner=owner, runbook=runbook)(fail)
    scheduler.tick()
    for number in range(jobs):
        scheduler.trigger(f"job-{number}")
    scheduler.tick()
    return url


def test_every_alarm_is_a_line_and_what_was_told_another(cli: Cli) -> None:
    url = ill(jobs=4, settle="0s")
    answer = cli("alarms", "--store", url)
    assert (answer.code, answer.err) == (0, "")
    header, *rows, blank, told = answer.lines
    assert header.split() == ["ALARM", "STATE", "OF", "SINCE", "(UTC)", "WHY"]
    assert [row.split()[:3] for row in rows] == [["failing", "told", f"job-{number}"] for number in range(4)]
    assert rows[0].endswith("its last run ended badly: ValueError: no paper")
    assert blank == ""
    assert told.startswith("failing was told at 20")
    assert told.endswith(" UTC by kitchen")


def test_status_has_a_line_for_all_of_a_kind(cli: Cli) -> None:
    url = ill(jobs=4)
    answer = cli("status", "--store", url)
    (line,) = [line for line in answer.lines if line.startswith("failing")]
    assert "4 jobs, such as job-0, job-1, job-2" in line
    assert line.endswith("`solocron alarms` lists them")


def test_the_owner_and_the_runbook_of_a_job_stand_beside_it(cli: Cli) -> None:
    url = ill(owner="billing", runbook="https://wiki.example.com/invoices")
    assert (
        cli("alarms", "--store", url).lines[1].endswith("; owner: billing; runbook: https://wiki.example.com/invoices")
    )
    (found,) = cli("alarms", "--store", url, "--json").json["alarms"]
    assert (found["owner"], found["runbook"]) == ("billing", "https://wiki.example.com/invoices")


def test_what_joins_after_the_message_is_not_called_told(cli: Cli) -> None:
    url = ill(settle="0s")
    scheduler = Scheduler(url, enabled=True, node="kitchen")
    scheduler.alarms(every="1ms", failing=1)

    @scheduler.every("1h", name="later")
    def later() -> None:
        raise ValueError("as well")

    scheduler.tick()
    scheduler.trigger("later")
    scheduler.tick()
    found = cli("alarms", "--store", url, "--json").json["alarms"]
    assert {one["subject"]: one["state"] for one in found} == {"job-0": "told", "later": "untold"}


def test_what_is_wrong_comes_before_what_is_silenced(cli: Cli) -> None:
    url = ill(jobs=3)
    cli("alarms", "silence", "job-[01]", "--until", "2h", "--store", url)
    found = cli("alarms", "--store", url, "--json").json["alarms"]
    assert [one["subject"] for one in found] == ["job-2", "job-0", "job-1"]


def test_nothing_wrong_is_said_in_words(cli: Cli) -> None:
    assert cli("alarms", "--store", ill(jobs=0)).lines == ["no alarm is open"]


def test_what_is_silenced_is_listed_and_no_longer_wrong_until_it_is_lifted(cli: Cli) -> None:
    url = ill()
    assert cli("status", "--store", url).code == 1
    answer = cli("alarms", "silence", "failing", "--until", "2h", "--note", "known", "--by", "ann", "--store", url)
    assert answer.code == 0
    assert answer.out.startswith("failing is silenced until 20")
    assert answer.out.endswith(" UTC, or until `solocron alarms lift failing`\n")
    assert cli("status", "--store", url).code == 0
    found = cli("alarms", "--store", url, "--json").json
    assert [(one["subject"], one["state"]) for one in found["alarms"]] == [("job-0", "silenced")]
    (silence,) = found["silences"]
    assert (silence["what"], silence["by"], silence["note"]) == ("failing", "ann", "known")
    assert moment(found["alarms"][0]["silenced_until"]) == moment(silence["until"]) > moment(silence["since"])
    assert cli("alarms", "--store", url).lines[-1].split()[0] == "failing"
    answer = cli("alarms", "lift", "failing", "--store", url)
    assert (answer.code, answer.out) == (0, "failing is no longer silenced: what is still wrong is told\n")
    assert cli("status", "--store", url).code == 1
    assert cli("alarms", "--store", url, "--json").json["silences"] == []
    answer = cli("alarms", "silence", "failing:job-*", "--until", "2h", "--store", url)
    assert answer.out.endswith(" UTC, or until `solocron alarms lift 'failing:job-*'`\n"), "as a shell wants it"


def test_a_silence_of_the_same_words_replaces_the_one_before(cli: Cli) -> None:
    url = ill()
    for note in ("first", "second"):
        assert cli("alarms", "silence", "job-*", "--until", "2h", "--note", note, "--store", url).code == 0
    assert [one["note"] for one in cli("alarms", "--store", url, "--json").json["silences"]] == ["second"]


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["silence", "failing"], 2, "alarms silence: say --until when, such as --until 2h; nothing was silenced."),
        (["silence"], 2, "alarms silence: say what, a kind or a pattern of jobs; nothing was changed."),
        (["lift"], 2, "alarms lift: say what, a kind or a pattern of jobs; nothing was changed."),
        (["silence", "failing", "--until", "soon"], 2, "--until: 'soon' is neither an instant such as"),
        (["silence", "failing", "--until", "2020-01-01"], 2, "is in the past. Nothing was silenced."),
        (["silence", "failing", "--until", "91d"], 2, "more than 90 days ahead; silence it again then."),
        (
            ["silence", "fialing", "--until", "2h"],
            3,
            "solocron: 'fialing' is neither a kind of alarm nor a job; did you mean 'failing'? Nothing was silenced.\n",
        ),
        (["silence", "late:job-7", "--until", "2h"], 3, "is neither a kind of alarm nor a job; did you mean 'job-0'?"),
        (["silence", "", "--until", "2h"], 2, "'' cannot be silenced: give a kind, a pattern of jobs such as"),
        (["silence", "a\nb*", "--until", "2h"], 2, "cannot be silenced"),
        (
            ["silence", "late:[", "--until", "2h"],
            2,
            "no name can match '[': its '[' is not closed. Nothing was silenced.",
        ),
        (
            ["silence", "failing", "--until", "2h", "--note", "x" * 501],
            2,
            "a string of at most 500 characters; nothing was silenced.",
        ),
        (["lift", "late"], 3, "there is no silence 'late'; `solocron alarms` lists them. Nothing was lifted.\n"),
        (["lift", "failing", "--until", "1h"], 2, "alarms lift takes no --until: it ends the silence now; nothing was"),
        (["--note", "x"], 2, "--until, --note and --by belong to `solocron alarms silence`; nothing was changed."),
        (["quieten", "failing"], 2, "invalid choice: 'quieten'"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(cli: Cli, words: list[str], code: int, why: str) -> None:
    url = ill()
    answer = cli("alarms", *words, "--store", url)
    assert answer.code == code
    assert why in answer.err
    assert len([line for line in answer.err.splitlines() if not line.startswith("next: ")]) == 1
    assert cli("alarms", "--store", url, "--json").json["silences"] == []
