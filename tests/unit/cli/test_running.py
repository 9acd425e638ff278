"""`run` and `tick`: what TARGET may be, which flags win, what is refused and where the mistake is."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest

from solocron import Scheduler, StoreError
from solocron.cli.logs import logging_to_stderr
from tests.unit.cli.kit import Answer

Cli = Callable[..., Answer]

ONE_JOB = """
    from solocron import every

    @every("1h")
    def invoices():
        return "sent"
"""
OWN = """
    from solocron import Scheduler

    scheduler = Scheduler("memory://own", node="own", pools=("gpu",), lease="9s", beat="2s")

    @scheduler.every("1h")
    def invoices():
        return "sent"
"""


@pytest.fixture(autouse=True)
def modules_as_before() -> Iterator[None]:
    """What a target put into this process is taken out again."""
    path = list(sys.path)
    yield
    for name in [name for name in sys.modules if name.startswith(("shop_", "store_"))]:
        del sys.modules[name]
    sys.path[:] = path


@pytest.fixture
def write(elsewhere: Path) -> Callable[[str, str], Path]:
    def put(name: str, text: str) -> Path:
        file = elsewhere / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
        return file

    return put


Write = Callable[[str, str], Path]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Scheduler, timedelta]]:
    """The schedulers that `run` would have started, and their grace."""
    found: list[tuple[Scheduler, timedelta]] = []
    monkeypatch.setattr(
        "solocron.process.run_until_signalled", lambda scheduler, grace: found.append((scheduler, grace))
    )
    return found


Started = list[tuple[Scheduler, timedelta]]


def test_a_bare_module_without_a_scheduler_gets_one_for_its_jobs(cli: Cli, write: Write, started: Started) -> None:
    write("shop_a.py", ONE_JOB)
    answer = cli("run", "shop_a", "--store", "memory://a", "--node", "n1", "--pools", "x, y", "--grace", "5s")
    assert (answer.code, answer.out) == (0, "")
    ((scheduler, grace),) = started
    assert set(scheduler.registry.jobs) == {"invoices"}
    settings = scheduler._settings
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
    ],
)
@pytest.mark.parametrize("target", ["shop_k", "shop_k.py"])
def test_a_broken_module_says_what_and_where(
    cli: Cli, write: Write, started: Started, target: str, text: str, said: str
) -> None:
    write("shop_k.py", text)
    answer = cli("run", target, "--store", "memory://k")
    assert (answer.code, started) == (2, [])
    assert said in answer.err
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


# --- flags over a module's own scheduler -----------------------------------------------------------------------------


def test_flags_win_over_what_the_module_said(cli: Cli, write: Write, started: Started) -> None:
    write("shop_m.py", OWN)
    flags = (
        "--store",
        "memory://flag",
        "--namespace",
        "ns",
        "--lease",
        "6s",
        "--max-running",
        "3",
        "--node",
        "flagged",
    )
    assert cli("run", "shop_m:scheduler", *flags, "--pools", "cpu").code == 0
    scheduler = started[0][0]
    settings = scheduler._settings
    assert (settings.node, set(settings.pools), settings.max_running) == ("flagged", {"cpu"}, 3)
    assert (settings.lease, settings.beat) == (6.0, 2.0)
    assert (scheduler.client.store.url, scheduler.client.store.namespace) == ("memory://flag", "ns")


def test_without_flags_nothing_of_the_module_is_changed(cli: Cli, write: Write, started: Started) -> None:
    write("shop_n.py", OWN)
    cli("run", "shop_n:scheduler", "--max-running", "7")
    settings = started[0][0]._settings
    assert (settings.node, set(settings.pools), settings.lease, settings.beat) == ("own", {"gpu"}, 9.0, 2.0)
    assert settings.max_running == 7
    assert settings.keep == timedelta(days=30) / timedelta(microseconds=1)


@pytest.mark.parametrize("flag", [("--namespace", "x"), ("--lease", "6s")])
def test_a_store_of_the_modules_own_must_be_named_to_be_changed(
    cli: Cli, write: Write, started: Started, flag: tuple[str, str]
) -> None:
    write("shop_o.py", OWN)
    answer = cli("run", "shop_o", *flag)
    assert (answer.code, started) == (2, [])
    assert f"{flag[0]} alone cannot change it" in answer.err
    assert "Give --store as well" in answer.err


def test_the_default_store_can_be_changed_without_naming_it(
    cli: Cli, write: Write, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLOCRON_STORE", "memory://env")
    write("shop_p.py", dedent(OWN).replace('"memory://own", ', ""))
    assert cli("run", "shop_p", "--namespace", "x", "--lease", "3s").code == 0
    assert started[0][0].client.store.namespace == "x"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--lease", "soon"), "lease: 'soon' is not a duration"),
        (("--lease", "1ms"), "below 300ms"),
        (("--node", "a b"), "node='a b' cannot be used"),
        (("--pools", "a b"), "pool='a b' cannot be used"),
        (("--grace", "later"), "--grace: 'later' is not a duration"),
        (("--max-running", "0"), "whole number from 1 up"),
        (("--store", "orcale://x"), "no store has the scheme"),
    ],
)
@pytest.mark.parametrize("text", [ONE_JOB, OWN], ids=["made", "own"])
def test_bad_flags_start_nothing(
    cli: Cli, write: Write, started: Started, text: str, flags: tuple[str, str], said: str
) -> None:
    write("shop_q.py", text)
    answer = cli("run", "shop_q", "--store", "memory://q", *flags)
    assert (answer.code, started) == (2, [])
    assert said in answer.err


def test_a_module_that_starts_its_scheduler_is_refused(cli: Cli, write: Write) -> None:
    write("shop_r.py", dedent(OWN) + "scheduler.start()\n")
    answer = cli("run", "shop_r")
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


def test_in_a_container_a_node_without_a_store_is_refused(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch, elsewhere: Path
) -> None:
    monkeypatch.setattr("solocron.surroundings.in_container", lambda: True)
    write("shop_s.py", ONE_JOB)
    answer = cli("tick", "shop_s")
    assert answer.code == 2
    assert "set SOLOCRON_STORE" in answer.err
    assert not (elsewhere / "solocron.db").exists()


# --- tick ------------------------------------------------------------------------------------------------------------

DUE = """
    from datetime import UTC, datetime
    from solocron import Scheduler

    scheduler = Scheduler("memory://{name}")

    @scheduler.every("1h")
    def work():
        {body}

    scheduler.tick()
    scheduler.trigger("work")
"""


def test_tick_does_what_is_due_and_lists_it(cli: Cli, write: Write) -> None:
    write("shop_t.py", DUE.format(name="t", body="return 7"))
    answer = cli("tick", "shop_t", "--json")
    assert answer.code == 0
    (run,) = answer.json
    assert (run["job"], run["status"], run["result"]) == ("work", "succeeded", 7)
    again = cli("tick", "shop_t")
    assert (again.code, again.out) == (0, "")
    assert "nothing was due" in again.err


def test_tick_with_a_run_that_fails_is_a_failure(cli: Cli, write: Write) -> None:
    write("shop_u.py", DUE.format(name="u", body="raise ValueError('no paper')"))
    answer = cli("tick", "shop_u")
    assert answer.code == 1
    assert "ValueError: no paper" in answer.out


def test_a_switched_off_tick_does_nothing(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOCRON_ENABLED", "off")
    write("shop_v.py", ONE_JOB)
    answer = cli("tick", "shop_v", "--store", "memory://v", "--json")
    assert (answer.code, answer.json) == (0, [])
    assert "scheduling is switched off here" in answer.err


def test_a_store_that_is_away_is_exit_5(cli: Cli, write: Write, elsewhere: Path) -> None:
    write("shop_w.py", ONE_JOB)
    answer = cli("tick", "shop_w", "--store", "sqlite:///no-folder/x.db")
    assert answer.code == StoreError.exit_code
    assert "no-folder" in answer.err


# --- logs ------------------------------------------------------------------------------------------------------------


def test_log_lines_as_json_carry_the_facts_and_escape_control_characters(cli: Cli, write: Write) -> None:
    write("shop_x.py", DUE.format(name="x", body="raise ValueError('a' + chr(27) + chr(10) + 'b')"))
    answer = cli("tick", "shop_x", "--json", "--log-format", "json")
    lines = [json.loads(line) for line in answer.err.splitlines()]
    (finished,) = [line for line in lines if line.get("event") == "finished"]
    assert (finished["level"], finished["job"], finished["outcome"]) == ("error", "work", "failed")
    assert finished["time"].endswith("Z")
    assert {"message", "logger", "slot", "run", "attempt", "node", "fence"} <= set(finished)
    assert "\x1b" not in answer.err


def test_a_text_log_line_cannot_be_forged(cli: Cli, write: Write) -> None:
    body = "raise ValueError(chr(10) + '2026-01-01T00:00:00.000Z ERROR   all is lost' + chr(27))"
    write("shop_y.py", DUE.format(name="y", body=body))
    answer = cli("tick", "shop_y")
    assert "\x1b" not in answer.err
    assert not [line for line in answer.err.splitlines() if line.startswith("2026-01-01")]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_stays_with_its_line(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr(form, "info"):
        try:
            raise OSError("no\x07paper")
        except OSError:
            logging.getLogger("shop").exception("it broke", extra={"job": "invoices"})
    lines = capsys.readouterr().err.splitlines()
    if form == "json":
        (line,) = map(json.loads, lines)
        assert (line["job"], line["logger"]) == ("invoices", "shop")
        assert line["exception"].endswith("OSError: no\x07paper")
    else:
        assert lines[0].endswith("ERROR   shop: it broke")
        assert lines[-1] == r"    OSError: no\x07paper"
        assert all(line.startswith("    ") for line in lines[1:])


def test_the_log_level_is_a_choice_and_logging_is_left_as_it_was(cli: Cli, write: Write) -> None:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    write("shop_z.py", DUE.format(name="z", body="pass"))
    assert cli("tick", "shop_z", "--log-level", "error").err == ""
    write("shop_zz.py", DUE.format(name="zz", body="pass"))
    assert " DEBUG   a body started [job=work" in cli("tick", "shop_zz", "--log-level", "debug").err
    assert (logging.getLogger().handlers[:], logging.getLogger().level) == before
