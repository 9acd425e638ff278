"""A crontab's lines keep their time, command, input and environment; what only one machine can do is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from solocron import Cron, Scheduler, cron
from solocron.errors import InvalidError, ScheduleError
from solocron.importers import from_crontab

CRONTAB = """\
# m h dom mon dow command
SHELL=/bin/sh
MAILTO=ops@example.com
GREETING = "good morning"

30 2 * * *      /usr/local/bin/backup --all
0 9 * * 1-5     mail -s "Report" boss%Dear boss,%100\\% done.%
@hourly         echo $GREETING
MAILTO=""
0 0 1,15 * 7    true # not a comment
"""


def test_every_line_becomes_a_job_with_its_time_and_command() -> None:
    jobs = from_crontab(CRONTAB, tz="Europe/Vienna")
    assert [(job.line, job.converted.schedule, job.command) for job in jobs] == [
        (6, Cron("30 2 * * *", tz="Europe/Vienna"), "/usr/local/bin/backup --all"),
        (7, Cron("0 9 * * 1-5", tz="Europe/Vienna"), 'mail -s "Report" boss'),
        (8, Cron("@hourly", tz="Europe/Vienna"), "echo $GREETING"),
        (10, Cron("0 0 1,15 * 7", tz="Europe/Vienna"), "true # not a comment"),
    ]


def test_a_percent_sign_ends_the_command_and_begins_its_input() -> None:
    assert from_crontab(CRONTAB, tz="UTC")[1].stdin == "Dear boss,\n100% done.\n"


@pytest.mark.parametrize(
    ("written", "command", "stdin"),
    [
        ("date +\\%F", "date +%F", None),
        ("cat%one%two", "cat", "one\ntwo\n"),
        ("cat%one%two%", "cat", "one\ntwo\n"),
        ("cat%", "cat", ""),
        ("cat%50\\% of it", "cat", "50% of it\n"),
        (r"printf a\\nb", r"printf a\\nb", None),
        (r"printf a\\\\%b", r"printf a\\\\", "b\n"),
    ],
)
def test_percent_signs_bare_and_escaped(written: str, command: str, stdin: str | None) -> None:
    job = from_crontab(f"* * * * * {written}", tz="UTC")[0]
    assert (job.command, job.stdin) == (command, stdin)


def test_mailto_is_told_as_long_as_it_is_set_and_is_not_the_commands_business() -> None:
    first, *_, last = from_crontab(CRONTAB, tz="UTC")
    assert any("ops@example.com" in note for note in first.notes)
    assert not last.notes
    assert first.environment == {"SHELL": "/bin/sh", "GREETING": "good morning"}


def test_the_source_of_a_line_runs_the_same_command_with_the_same_input(tmp_path: Path) -> None:
    lines = "GREETING=hello\n0 9 * * 1-5 (echo $GREETING; cat) > out.txt%one%two\n"
    source = from_crontab(lines, tz="Europe/Vienna")[0].source("report")
    scope: dict[str, Any] = {"os": os, "subprocess": subprocess, "cron": cron}
    exec(compile(source, "jobs.py", "exec"), scope)
    scheduler = Scheduler("memory://")
    assert scheduler.discover(scope["report"]) == ["report"]
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        scope["report"]()
    finally:
        os.chdir(before)
    assert (tmp_path / "out.txt").read_text() == "hello\none\ntwo\n"


def test_a_system_crontab_has_a_user_in_each_line() -> None:
    job = from_crontab("17 * * * * root cd / && run-parts --report hourly.d", tz="UTC", system=True)[0]
    assert (job.user, job.command) == ("root", "cd / && run-parts --report hourly.d")
    assert any("root" in note for note in job.notes)


def test_cron_tz_is_the_zone_of_the_lines_after_it() -> None:
    before, after = from_crontab("0 1 * * * a\nCRON_TZ=Asia/Tokyo\n0 1 * * * b\n", tz="UTC")
    assert before.converted.schedule == Cron("0 1 * * *")
    assert after.converted.schedule == Cron("0 1 * * *", tz="Asia/Tokyo")
    assert any("Debian" in note for note in after.notes)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("@reboot /usr/bin/start", "line 2: .*replicas start at any moment"),
        ("0 0 30 2 * true", "line 2: .*never meet"),
        ("61 * * * * true", "line 2: .*minute"),
        ("~ 3 * * * true", "line 2: .*write H"),
        ("0 3 * * *", "line 2: .*too few fields"),
        ("0 3 * * * %input", "line 2: .*no command"),
    ],
)
def test_a_line_that_cannot_be_converted_refuses_the_whole_and_names_its_number(line: str, why: str) -> None:
    with pytest.raises(InvalidError, match=why) as refused:
        from_crontab(f"0 1 * * * good\n{line}\n", tz="UTC")
    assert "Nothing was converted" in str(refused.value)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ScheduleError, match="unknown time zone"):
        from_crontab("0 1 * * * true", tz="Mars/Olympus")
