"""TARGET: a module, `module:scheduler` or a path, and the jobs that it brings."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest

from solocron import Scheduler
from solocron.scheduler.hooks import core_of
from tests.unit.cli.kit import ONE_JOB, OWN, Cli, Started, Write


def test_a_bare_module_without_a_scheduler_gets_one_for_its_jobs(cli: Cli, write: Write, started: Started) -> None:
    write("shop_a.py", ONE_JOB)
    answer = cli("run", "shop_a", "--store", "memory://a", "--node", "n1", "--pools", "x, y", "--grace", "5s")
    assert (answer.code, answer.out) == (0, "")
    ((scheduler, grace),) = started
    assert set(scheduler.registry.jobs) == {"invoices"}
    settings = core_of(scheduler).settings
    assert (settings.node, set(settings.pools), settings.lease) == ("n1", {"x", "y"}, 15.0)
    assert grace == timedelta(seconds=5)
    assert "registered invoices [Every 1h] -> shop_a.invoices" in answer.err


def test_a_bare_module_with_one_scheduler_uses_it(cli: Cli, write: Write, started: Started) -> None:
    write("shop_b.py", OWN)
    assert cli("run", "shop_b").code == 0
    assert started[0][0] is sys.modules["shop_b"].scheduler


def test_jobs_beside_the_scheduler_of_a_bare_module_are_its_own(cli: Cli, write: Write, started: Started) -> None:
    write("shop_c.py", dedent(OWN) + dedent(ONE_JOB).replace("def invoices", "def report"))
    assert cli("run", "shop_c").code == 0
    assert set(started[0][0].registry.jobs) == {"invoices", "report"}


def test_a_named_scheduler_is_used_also_inside_an_object(cli: Cli, write: Write, started: Started) -> None:
    write("shop_d.py", dedent(OWN) + "class app:\n    crons = scheduler\n")
    for target in ("shop_d:scheduler", "shop_d:app.crons"):
        assert cli("run", target).code == 0
    assert started[0][0] is started[1][0]


def test_a_named_scheduler_without_jobs_gets_those_of_its_module(cli: Cli, write: Write, started: Started) -> None:
    write("shop_dd.py", dedent(ONE_JOB) + "from solocron import Scheduler\ncrons = Scheduler('memory://dd')\n")
    assert cli("run", "shop_dd:crons").code == 0
    assert set(started[0][0].registry.jobs) == {"invoices"}


def test_two_schedulers_must_be_told_apart(cli: Cli, write: Write, started: Started) -> None:
    write("shop_e.py", dedent(OWN) + "other = Scheduler('memory://other')\n")
    answer = cli("run", "shop_e")
    assert answer.code == 2
    assert "shop_e:scheduler or shop_e:other" in answer.err
    assert started == []


def test_a_path_is_a_target_too(cli: Cli, write: Write, started: Started, elsewhere: Path) -> None:
    write("deep/er/shop_f.py", ONE_JOB)
    assert cli("run", "deep/er/shop_f.py", "--store", "memory://f").code == 0
    write("deep/er/shop_g.py", OWN)
    assert cli("run", str(elsewhere / "deep/er/shop_g.py") + ":scheduler").code == 0
    assert [set(scheduler.registry.jobs) for scheduler, _ in started] == [{"invoices"}] * 2


def test_a_file_of_a_package_is_imported_as_its_module(cli: Cli, write: Write, started: Started) -> None:
    write("store_h/__init__.py", "PERIOD = '2h'\n")
    write("store_h/jobs.py", "from . import PERIOD\nfrom solocron import every\n\n@every(PERIOD)\ndef work(): ...\n")
    assert cli("run", "./store_h/jobs.py", "--store", "memory://h").code == 0
    assert started[0][0].registry.jobs["work"].place == "store_h.jobs.work"


def test_a_package_is_walked(cli: Cli, write: Write, started: Started) -> None:
    write("store_i/__init__.py", "")
    write("store_i/jobs.py", ONE_JOB)
    assert cli("run", "store_i", "--store", "memory://i").code == 0
    assert set(started[0][0].registry.jobs) == {"invoices"}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("shop_jj", "there is no module 'shop_jj' here or on the import path; did you mean 'shop_j'?"),
        ("nowhere.py", "there is no file nowhere.py"),
        ("not a module", "neither a module's name nor a path"),
        ("shop_j:schedular", "did you mean shop_j:scheduler?"),
        ("shop_j:invoices", "is a function, not a Scheduler"),
    ],
)
def test_a_target_that_is_not_there_is_a_usage_error(
    cli: Cli, write: Write, started: Started, target: str, said: str
) -> None:
    write("shop_j.py", OWN)
    answer = cli("run", target)
    assert (answer.code, started) == (2, [])
    assert said in answer.err
    assert "othing was started" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import json\n1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
        ("def f(:\n", "line 1: "),
        ("import no_such_thing\n", "line 1: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("import sys\nsys.exit(3)\n", "it ends the process when imported (exit 3)"),
        (
            "from solocron import cron\n@cron('61 * * * *')\ndef f(): ...\n",
            "line 2: ScheduleError: cron '61 * * * *'",
        ),
        ("x = 1\n", "declares no jobs"),
        ("raise RuntimeError('first\\nsecond')\n", "line 1: RuntimeError: first. Nothing was started."),
        ("raise RuntimeError('x' * 2_000)\n", f"RuntimeError: {'x' * 286}... Nothing was started."),
    ],
)
@pytest.mark.parametrize("target", ["shop_k", "shop_k.py"])
def test_a_broken_module_says_what_and_where(
    cli: Cli, write: Write, started: Started, target: str, text: str, said: str
) -> None:
    write("shop_k.py", text)
    answer = cli("run", target, "--store", "memory://k")
    assert (answer.code, started) == (2, [])
    first, following = answer.err.splitlines()
    assert said in first
    assert following == "next: solocron run --help"
    assert ".." not in answer.err.replace("...", "")
    assert "Traceback" not in answer.err


def test_a_file_with_the_name_of_a_standard_module_is_refused(cli: Cli, write: Write) -> None:
    write("queue.py", ONE_JOB)
    answer = cli("run", "queue.py")
    assert answer.code == 2
    assert "Rename the file" in answer.err


def test_two_jobs_of_one_name_are_refused_naming_both(cli: Cli, write: Write) -> None:
    write("shop_l.py", dedent(ONE_JOB) + "@every('2h', name='invoices')\ndef other(): ...\n")
    answer = cli("run", "shop_l", "--store", "memory://l")
    assert answer.code == 2
    assert "shop_l.invoices and shop_l.other" in answer.err


@pytest.mark.parametrize("ending", ["scheduler.run_forever()", "scheduler.start()", "with scheduler: ..."])
@pytest.mark.parametrize("command", ["run", "tick"])
def test_a_module_that_starts_its_scheduler_is_refused(cli: Cli, write: Write, command: str, ending: str) -> None:
    write("shop_r.py", dedent(OWN) + f"{ending}\n")
    answer = cli(command, "shop_r")
    assert answer.code == 2
    assert "shop_r.py, line 9: the module starts its scheduler when it is imported" in answer.err


def test_so_is_a_package_with_such_a_module_in_it(cli: Cli, write: Write) -> None:
    write("store_r/__init__.py", "")
    write("store_r/jobs.py", dedent(OWN) + "scheduler.run_forever()\n")
    answer = cli("tick", "store_r", "--store", "memory://r")
    assert answer.code == 2
    assert "module 'store_r.jobs' could not be imported" in answer.err
    assert "the module starts its scheduler when it is imported" in answer.err


def test_after_a_refused_target_this_process_may_start_schedulers(cli: Cli, write: Write) -> None:
    write("shop_rr.py", dedent(OWN) + "scheduler.start()\n")
    assert cli("run", "shop_rr").code == 2
    with Scheduler("memory://rr") as scheduler:
        assert [node.state for node in scheduler.nodes()] == ["live"]


@pytest.mark.parametrize("target", ["books_jobs", "solocron.django:scheduler"])
def test_in_a_django_project_the_error_names_its_own_command(cli: Cli, write: Write, target: str) -> None:
    """It told of a registry, in a file of Django's."""
    write("books_jobs.py", "from django.contrib.auth import models")
    answer = cli("tick", target)
    assert answer.code == 2
    assert "othing was started; in a Django project each command is `python manage.py solocron ...`" in answer.err
    assert "registry.py" not in answer.err


def test_a_module_of_handlers_alone_is_not_warned_of(cli: Cli, write: Write, caplog: pytest.LogCaptureFixture) -> None:
    """The module that `solocron import --handlers` writes declares no job; its jobs are data."""
    write(
        "shop_m.py",
        "from solocron import Scheduler\nscheduler = Scheduler()\nscheduler.register(lambda: 1, name='m')\n",
    )
    answer = cli("diff", "shop_m", "--store", "memory://m")
    assert answer.code == 0
    assert "no job is declared" not in answer.err + caplog.text


@pytest.mark.parametrize("command", ["run", "tick", "diff"])
def test_an_empty_list_of_pools_is_refused(cli: Cli, write: Write, started: Started, command: str) -> None:
    write("shop_n.py", ONE_JOB)
    answer = cli(command, "shop_n", "--store", "memory://n", "--pools", ",")
    assert (answer.code, answer.out, started) == (2, "", [])
    assert answer.err.startswith("solocron: --pools: the list is empty; name what is wanted, or leave the flag out.")
