"""`solocron import`: real schedules of Celery, django-celery-beat, APScheduler and cron are added and undone."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from solocron import Every, Scheduler
from tests.unit.cli.kit import Answer, Cli, Write

CELERY = """
    from datetime import timedelta
    from celery import Celery
    from celery.schedules import crontab

    app = Celery("shop", broker="memory://")
    app.conf.timezone = "Europe/Vienna"
    app.conf.beat_schedule = {
        "close books": {"task": "shop.close", "schedule": crontab(30, 7, day_of_week="mon-fri"), "args": (7,)},
        "nightly": {
            "task": "shop.nightly", "schedule": crontab(minute=0, hour=3),
            "kwargs": {"deep": True}, "options": {"queue": "slow", "expires": 60},
        },
        "poll": {"task": "shop.poll", "schedule": timedelta(minutes=5)},
        "when": {"task": "shop.lamp"},
        "both days": {"task": "shop.x", "schedule": crontab(0, 0, day_of_month="10-20", day_of_week="mon,tue")},
    }

    @app.task(name="shop.poll")
    def poll(): ...
"""

HANDLERS = """
    from solocron import Scheduler

    scheduler = Scheduler("sqlite:///jobs.db", node="kitchen")
    for name in ("shop.close", "shop.nightly", "shop.poll", "shop.heartbeat", "shop.digest", "shop.clocked", "backup",
                 "report", "report-2", "builtins:print"):
        scheduler.register(lambda run: None, name=name)
"""


@pytest.fixture
def shop(write: Write) -> None:
    write("shop_celery.py", CELERY)
    write("shop_handlers.py", HANDLERS)
    write("shop_half.py", "from celery import Celery\napp = Celery('half', include=['no_such_tasks'])\n")


def by_name(answer: Answer) -> dict[str, Any]:
    return {row["job"]: row for row in answer.json["jobs"]}


def definitions(url: str = "sqlite:///jobs.db") -> dict[str, dict[str, Any]]:
    """What is in the store, as it is stored."""
    from solocron.stores.paging import iter_jobs
    from solocron.stores.url import make_store

    store = make_store(url)
    store.open(read_only=True)
    try:
        return {job.name: job.definition.to_json() for job in iter_jobs(store)}
    finally:
        store.close()


# --- celery ----------------------------------------------------------------------------------------------------------


def test_a_beat_schedule_is_reported_and_a_dry_run_makes_no_store(cli: Cli, shop: None, elsewhere: Path) -> None:
    answer = cli("import", "--from", "celery", "shop_celery:app", "--dry-run")
    assert answer.code == 1  # two entries have no counterpart
    text = answer.out
    assert "as it is: 1\n  nightly  At 03:00 every day, Europe/Vienna, calls shop.nightly\n" in text
    assert (
        "with a difference: 2\n  close-books  At 07:30 on Monday through Friday, Europe/Vienna, calls shop.close"
        in text
    )
    assert "      it was named 'close books'.\n" in text
    assert "      every() counts from 1970-01-01 UTC" in text
    assert "not imported: 2\n  both days: day 10-20 and day of week MON,TUE must both match" in text
    assert "  when: an entry of beat_schedule needs a schedule.\n" in text
    assert "nothing was added; handlers to have: shop.close, shop.nightly, shop.poll\n" in text
    assert sorted(path.name for path in elsewhere.iterdir() if path.suffix != "") == [
        "shop_celery.py",
        "shop_half.py",
        "shop_handlers.py",
    ]


@pytest.mark.parametrize("where", [("--for", "shop_handlers"), ("--store", "sqlite:///jobs.db")], ids=["for", "store"])
def test_a_dry_run_says_what_is_there_already_and_what_clashes(cli: Cli, shop: None, where: tuple[str, str]) -> None:
    given = ("import", "--from", "celery", "shop_celery:app")
    cli(*given, "--for", "shop_handlers")
    scheduler = Scheduler("sqlite:///jobs.db")
    scheduler.register(lambda run: None, name="shop.nightly")
    scheduler.add("nightly", "shop.nightly", Every("3h"))
    scheduler.remove("poll")
    scheduler.stop()
    before = definitions()
    answer = cli(*given, *where, "--dry-run", "--json")
    assert {name: row["result"] for name, row in by_name(answer).items()} == {
        "both days": "refused", "when": "refused", "close-books": "there already", "nightly": "refused",
        "poll": "would be added",
    }  # fmt: skip
    assert by_name(answer)["nightly"]["why"] == "there is another job named nightly; it was not changed."
    assert answer.json["looked_at"] == "sqlite:///jobs.db"
    assert definitions() == before
    said = cli(*given, *where, "--dry-run")
    assert (
        "  close-books  At 07:30 on Monday through Friday, Europe/Vienna, calls shop.close (there already)" in said.out
    )
    assert said.lines[-1] == "names were compared with those in sqlite:///jobs.db"


def test_a_dry_run_without_a_store_says_that_none_was_looked_at(cli: Cli, shop: None) -> None:
    given = ("import", "--from", "celery", "shop_celery:app", "--dry-run")
    for where in ((), ("--for", "shop_handlers"), ("--store", "sqlite:///nowhere.db")):
        answer = cli(*given, *where)
        assert answer.err == "there is no store yet, so there are no names to compare with\n"
        assert cli(*given, *where, "--json").json["looked_at"] is None


def test_a_dry_run_goes_on_where_the_store_is_away(cli: Cli, shop: None) -> None:
    answer = cli("import", "--from", "celery", "shop_celery:app", "--dry-run", "--store", "redis://127.0.0.1:1/0")
    assert answer.code == 1
    assert "nothing was added; handlers to have: shop.close, shop.nightly, shop.poll\n" in answer.out
    assert answer.err.startswith("what is there already is not known: redis://127.0.0.1:1/0 cannot be reached")


def test_what_an_import_adds_can_be_read_back_and_undone(cli: Cli, shop: None, elsewhere: Path) -> None:
    given = ("import", "--from", "celery", "shop_celery:app", "--for", "shop_handlers")
    answer = cli(*given, "--json")
    assert answer.code == 1
    assert {name: row["result"] for name, row in by_name(answer).items()} == {
        "both days": "refused", "when": "refused", "close-books": "added", "nightly": "added", "poll": "added",
    }  # fmt: skip
    told = {job["name"]: job for job in cli("jobs", "--json", "--store", "sqlite:///jobs.db").json}
    assert told["close-books"]["handler"] == "shop.close"
    assert told["close-books"]["zone"] == "Europe/Vienna"
    assert definitions()["nightly"] == {
        "handler": "shop.nightly",
        "schedule": {"kind": "cron", "expression": "0 3 * * *", "tz": "Europe/Vienna"},
        "payload": {"args": [], "kwargs": {"deep": True}, "options": {"queue": "slow", "expires": 60}},
        "start_within": 60_000_000,
        "application": "shop_handlers",
    }
    again = cli(*given, "--json")
    assert {row["result"] for row in again.json["jobs"]} == {"refused", "there already"}
    assert again.json["receipt"] is None
    receipt = answer.json["receipt"]
    assert [path.name for path in elsewhere.glob("solocron-import-*")] == [receipt]
    undone = cli("import", "--undo", receipt, "--store", "sqlite:///jobs.db")
    assert (undone.code, undone.lines[-1]) == (0, "3 of 3 jobs removed")
    assert definitions() == {}
    again = cli("import", "--undo", receipt, "--store", "sqlite:///jobs.db")
    # Nothing is left there, unless a slot of `poll` passed meanwhile, each five minutes: that leaves a record.
    assert again.code == 3 or again.lines[-1] == "0 of 3 jobs removed"


def test_an_import_and_its_undoing_say_who_and_why(cli: Cli, shop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "robin")
    given = ("import", "--from", "celery", "shop_celery:app", "--for", "shop_handlers")
    cli(*given, "--receipt", "r.jsonl", "--note", "move")
    scheduler = Scheduler("sqlite:///jobs.db")
    assert {(job.defined_by, job.defined_note) for job in scheduler.jobs()} == {("robin", "move")}
    run = scheduler.trigger("poll", at=datetime.now(UTC) + timedelta(hours=1))
    undone = cli("import", "--undo", "r.jsonl", "--by", "kim", "--note", "too early", "--store", "sqlite:///jobs.db")
    assert undone.code == 0
    assert scheduler.get_run(run).reason == "the job was removed by kim: too early"


def test_an_author_that_is_too_long_imports_nothing(cli: Cli, shop: None, elsewhere: Path) -> None:
    given = ("import", "--from", "celery", "shop_celery:app", "--for", "shop_handlers", "--note", "x" * 501)
    answer = cli(*given)
    assert answer.code == 2
    assert "a string of at most 500 characters; nothing was imported." in answer.err
    assert list(elsewhere.glob("solocron-import-*")) == []


def test_undo_keeps_what_was_changed_or_added_anew_and_other_jobs(cli: Cli, shop: None) -> None:
    cli("import", "--from", "celery", "shop_celery:app", "--for", "shop_handlers", "--receipt", "r.jsonl")
    scheduler = Scheduler("sqlite:///jobs.db")
    for name in ("shop.poll", "shop.nightly"):
        scheduler.register(lambda run: None, name=name)
    scheduler.add("mine", "shop.poll", "0 1 * * *")
    scheduler.add("poll", "shop.poll", "0 1 * * *")
    scheduler.remove("nightly")
    scheduler.add("nightly", "shop.nightly", "0 3 * * *")
    scheduler.stop()
    answer = cli("import", "--undo", "r.jsonl", "--store", "sqlite:///jobs.db")
    assert answer.code == 1
    assert answer.lines == [
        "close-books: removed",
        "nightly: kept, it was removed and added again since",
        "poll: kept, it was changed since",
        "1 of 3 jobs removed",
    ]
    assert sorted(definitions()) == ["mine", "nightly", "poll"]


def test_a_job_of_that_name_is_not_changed(cli: Cli, shop: None) -> None:
    scheduler = Scheduler("sqlite:///jobs.db")
    scheduler.register(lambda run: None, name="shop.poll")
    scheduler.add("poll", "shop.poll", "0 1 * * *")
    before = definitions()["poll"]
    scheduler.stop()
    row = by_name(cli("import", "--from", "celery", "shop_celery:app", "--for", "shop_handlers", "--json"))["poll"]
    assert (row["result"], row["why"]) == ("refused", "there is another job named poll; it was not changed.")
    assert definitions()["poll"] == before


def test_a_handler_that_no_program_has_is_refused(cli: Cli, shop: None, write: Write) -> None:
    write("shop_few.py", HANDLERS.replace('"shop.poll", ', ""))
    row = by_name(cli("import", "--from", "celery", "shop_celery:app", "--for", "shop_few", "--json"))["poll"]
    assert row["result"] == "refused"
    assert "no node has a handler 'shop.poll'" in row["why"]


def test_the_handlers_that_are_written_send_the_tasks(cli: Cli, shop: None, elsewhere: Path) -> None:
    cli("import", "--from", "celery", "shop_celery:app", "--dry-run", "--handlers", "shop_sent.py")
    answer = cli("import", "--from", "celery", "shop_celery:app", "--for", "shop_sent.py", "--store", "sqlite:///s.db")
    assert "3 jobs added" in answer.out
    program = """
import shop_sent, shop_celery
sent = []
shop_celery.app.send_task = lambda *a, **k: sent.append((a, k)) or type("R", (), {"id": "m1"})()
with shop_sent.scheduler as s:
    print(s.wait(s.trigger("nightly"), "50s").result, sent)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "SOLOCRON_STORE": "sqlite:///s.db", "PYTHONPATH": str(elsewhere)},
    )  # fmt: skip
    assert done.stdout == "m1 [(('shop.nightly', [], {'deep': True}), {'expires': 60, 'queue': 'slow'})]\n", done.stderr
    again = cli("import", "--from", "celery", "shop_celery:app", "--dry-run", "--handlers", "shop_sent.py")
    assert again.code == 2
    assert "shop_sent.py exists already, so it was not written" in again.err


# --- django-celery-beat ----------------------------------------------------------------------------------------------

DJANGO = """
import django, json, sys
from datetime import datetime, UTC
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from zoneinfo import ZoneInfo
from django_celery_beat.models import *
tab = CrontabSchedule.objects.create(minute="30", hour="7", day_of_week="1-5", timezone=ZoneInfo("Europe/Paris"))
PeriodicTask.objects.create(name="Send the digest", task="shop.digest", crontab=tab, args="[1]", queue="mail")
ten = IntervalSchedule.objects.create(every=10, period="seconds")
PeriodicTask.objects.create(name="heartbeat", task="shop.heartbeat", interval=ten, enabled=False)
then = ClockedSchedule.objects.create(clocked_time=datetime(2040, 1, 1, 12, tzinfo=UTC))
PeriodicTask.objects.create(name="clocked", task="shop.clocked", clocked=then, one_off=True)
sun = SolarSchedule.objects.create(event="sunset", latitude=48, longitude=16)
PeriodicTask.objects.create(name="lamp", task="shop.lamp", solar=sun)
PeriodicTask.objects.create(name="ends", task="shop.poll", interval=ten, expires=datetime(2040, 1, 1, tzinfo=UTC))
"""
SETTINGS = """
    USE_TZ = {use_tz}
    TIME_ZONE = "America/New_York"
    INSTALLED_APPS = ["django_celery_beat"]
    DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "{path}"}}}}
"""


@pytest.fixture(scope="module")
def beat_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real tables, made and filled by the real models."""
    folder = tmp_path_factory.mktemp("django")
    path = folder / "db.sqlite3"
    import textwrap

    (folder / "beat_settings.py").write_text(textwrap.dedent(SETTINGS.format(path=path, use_tz=True)))
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "beat_settings", "PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-c", DJANGO], env=environment, cwd=folder, check=True, timeout=120)
    return path


def test_the_tables_of_django_celery_beat_are_imported_from_a_database(
    cli: Cli, shop: None, beat_database: Path
) -> None:
    url = f"sqlite:///{beat_database}"
    before = beat_database.read_bytes()
    answer = cli("import", "--from", "django-celery-beat", url, "--for", "shop_handlers", "--json")
    rows = by_name(answer)
    assert {name: row["result"] for name, row in rows.items()} == {
        "Send-the-digest": "added", "heartbeat": "added", "clocked": "added", "lamp": "refused", "ends": "added",
    }  # fmt: skip
    assert "solar" in rows["lamp"]["why"]
    assert rows["ends"]["schedule"] == "Every 10s, until 2039-12-31 23:59:59 UTC"
    assert "expires=2040-01-01T00:00:00Z becomes ends=, the last instant before it." in rows["ends"]["notes"]
    stored = definitions()
    assert stored["ends"]["schedule"] == {"kind": "every", "period": "10s", "ends": "2039-12-31T23:59:59.999999Z"}
    assert stored["Send-the-digest"]["schedule"] == {
        "kind": "cron", "expression": "30 7 * * MON-FRI", "tz": "Europe/Paris",
    }  # fmt: skip
    assert stored["Send-the-digest"]["payload"] == {"args": [1], "kwargs": {}, "options": {"queue": "mail"}}
    assert stored["clocked"]["schedule"] == {"kind": "at", "at": "2040-01-01T12:00:00Z"}
    jobs = {job["name"]: job for job in cli("jobs", "--json", "--store", "sqlite:///jobs.db").json}
    assert jobs["heartbeat"]["paused"]["note"] == "it was switched off where it came from"
    assert jobs["heartbeat"]["enabled"] is True
    assert cli("runs", "--json", "--store", "sqlite:///jobs.db").json == []
    assert beat_database.read_bytes() == before


def test_and_through_a_settings_module(beat_database: Path, shop: None, elsewhere: Path) -> None:
    """In a process of its own: Django can be set up once."""
    command = [sys.executable, "-m", "solocron.cli", "import", "--from", "django-celery-beat"]
    environment = {**os.environ, "PYTHONPATH": str(beat_database.parent)}
    done = subprocess.run(
        [*command, "beat_settings", "--dry-run", "--json"],
        capture_output=True, text=True, env=environment, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert {row["job"] for row in json.loads(done.stdout)["jobs"]} == {
        "Send-the-digest", "heartbeat", "clocked", "lamp", "ends",
    }  # fmt: skip
    missing = subprocess.run(
        [*command, "no_settings", "--dry-run"], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "there is no module 'no_settings' here. Nothing was imported." in missing.stderr
    assert "Traceback" not in missing.stderr


# --- apscheduler -----------------------------------------------------------------------------------------------------


@pytest.fixture
def job_store(elsewhere: Path) -> Iterator[str]:
    """A real job store of APScheduler 3."""
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.background import BackgroundScheduler

    url = f"sqlite:///{elsewhere}/aps.sqlite"
    store = SQLAlchemyJobStore(url=url)
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone="Europe/Vienna")
    scheduler.start(paused=True)
    show = "builtins:print"
    scheduler.add_job(
        show, "cron", id="books", day_of_week="mon-fri", hour="8-18/2", minute="5,35", kwargs={"sep": ","}
    )
    scheduler.add_job(show, "cron", id="last", day="2nd fri,last", hour=6, month="jan-mar", misfire_grace_time=90)
    scheduler.add_job(show, "interval", id="poll", minutes=5, args=["x", 1], max_instances=3, coalesce=False)
    scheduler.add_job(show, "date", id="once", run_date="2040-01-01 09:00:00", misfire_grace_time=None)
    scheduler.add_job(show, "interval", id="off", hours=1, next_run_time=None)
    scheduler.add_job(show, "cron", id="object", hour=1, args=[Path("x")])
    scheduler.add_job(show, "cron", id="class", hour=1, args=[OSError])
    scheduler.add_job(show, "interval", id="ends", hours=1, end_date="2040-01-01 00:00:00")
    scheduler.add_job(show, "interval", id="from", hours=1, start_date="2040-01-01 00:00:00")
    yield url
    scheduler.shutdown()
    store.engine.dispose()


def test_a_job_store_of_apscheduler_is_imported(cli: Cli, shop: None, job_store: str) -> None:
    answer = cli("import", "--from", "apscheduler-store", job_store, "--for", "shop_handlers", "--json")
    rows = by_name(answer)
    assert {name: row["result"] for name, row in rows.items()} == {
        "books": "added", "last": "added", "poll": "added", "once": "added", "off": "added",
        "object": "refused", "class": "refused", "ends": "added", "from": "added",
    }  # fmt: skip
    assert rows["object"]["why"] == "one of its arguments is a pathlib.PosixPath; a payload is JSON."
    assert rows["class"]["why"] == "one of its arguments is builtins.OSError, which is code; a payload is JSON."
    stored = definitions()
    assert "end_date becomes ends=2039-12-31T23:00:00Z." in rows["ends"]["notes"]
    assert stored["ends"]["schedule"]["ends"] == "2039-12-31T23:00:00Z"
    assert stored["from"]["schedule"]["starts"] == "2039-12-31T23:00:00Z"
    vienna = {"kind": "cron", "tz": "Europe/Vienna"}
    assert stored["books"]["schedule"] == {**vienna, "expression": "5,35 8-18/2 * * MON-FRI"}
    assert stored["books"]["payload"] == {"args": [], "kwargs": {"sep": ","}}
    assert "start_within" not in stored["books"]
    assert stored["last"]["schedule"] == {**vienna, "expression": "0 6 L 1-3 FRI#2"}
    assert stored["last"]["start_within"] == 90_000_000
    assert stored["poll"]["schedule"] == {"kind": "every", "period": "5m"}
    assert stored["poll"]["overlap"] == ["allow", 3]
    assert stored["once"]["schedule"] == {"kind": "at", "at": "2040-01-01T08:00:00Z"}
    jobs = {job["name"]: job for job in cli("jobs", "--json", "--store", "sqlite:///jobs.db").json}
    assert [name for name, job in jobs.items() if job["paused"]] == ["off"]


class Bomb:
    """What `pickle.loads` would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch exploded",)


def test_nothing_of_a_hostile_pickle_runs(cli: Cli, shop: None, elsewhere: Path) -> None:
    billion: list[Any] = ["lol"]
    for _ in range(40):
        billion = [billion, billion, billion]
    states = {
        "bomb": pickle.dumps(Bomb()),
        "in args": pickle.dumps({"func": "a:b", "trigger": Bomb(), "args": (Bomb(),)}),
        "old protocol": pickle.dumps(Bomb(), protocol=0),
        "not a pickle": b"hello",
        "too large": b"\x80" * (2 << 20),
        "billion": pickle.dumps(billion),
        "empty": b"",
    }
    path = elsewhere / "hostile.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE apscheduler_jobs (id TEXT, next_run_time FLOAT, job_state BLOB)")
    connection.executemany("INSERT INTO apscheduler_jobs VALUES (?, 1, ?)", list(states.items()))
    connection.commit()
    connection.close()
    answer = cli("import", "--from", "apscheduler-store", f"sqlite:///{path}", "--dry-run", "--json")
    assert answer.code == 1
    assert {row["job"]: row["result"] for row in answer.json["jobs"]} == dict.fromkeys(states, "refused")
    assert not (elsewhere / "exploded").exists()


def test_arguments_that_grow_when_written_out_are_refused() -> None:
    from solocron.errors import InvalidError
    from solocron.importers.apscheduler_store import _refuse_objects

    billion: list[Any] = ["lol"]
    for _ in range(40):
        billion = [billion, billion, billion]
    with pytest.raises(InvalidError, match="too many"):
        _refuse_objects(billion)


# --- crontab ---------------------------------------------------------------------------------------------------------

CRONTAB = r"""
MAILTO=ops@example.com
SHELL=/bin/sh
30 2 * * *    /usr/local/bin/backup --all
@daily        report --date $(date +\%F)
CRON_TZ=Asia/Tokyo
0 9 * * 1-5   report > told%Good morning.%
@reboot       /bin/start
61 * * * *    bad
"""


def test_a_crontab_is_imported_and_its_commands_stay_out_of_the_store(cli: Cli, shop: None, elsewhere: Path) -> None:
    (elsewhere / "my.crontab").write_text(CRONTAB)
    given = ("import", "--from", "crontab", "my.crontab", "--tz", "Europe/Vienna")
    answer = cli(*given, "--for", "shop_handlers", "--json")
    rows = by_name(answer)
    assert {name: row["result"] for name, row in rows.items()} == {
        "backup": "added", "report": "added", "report-2": "added", "line 8": "refused", "line 9": "refused",
    }  # fmt: skip
    assert "@reboot" in rows["line 8"]["why"]
    stored = definitions()
    assert stored["report-2"]["schedule"] == {"kind": "cron", "expression": "0 9 * * 1-5", "tz": "Asia/Tokyo"}
    assert stored["backup"]["schedule"]["tz"] == "Europe/Vienna"
    assert "payload" not in json.dumps(stored)
    assert any("MAILTO" in note for note in rows["backup"]["notes"])


def test_the_handlers_of_a_crontab_run_its_commands(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "my.crontab").write_text("X=1\n0 9 * * *  cat > told%Good morning.%\n")
    given = ("import", "--from", "crontab", "my.crontab", "--tz", "UTC")
    written = cli(*given, "--dry-run", "--handlers", "shop_commands.py")
    assert written.code == 0
    assert "read it, and give it to the import that adds the jobs: --for shop_commands.py" in written.err
    assert cli(*given, "--for", "shop_commands.py", "--store", "sqlite:///c.db").code == 0
    program = (
        "import shop_commands\nwith shop_commands.scheduler as s:\n    print(s.wait(s.trigger('cat'), '20s').status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "SOLOCRON_STORE": "sqlite:///c.db", "PYTHONPATH": str(elsewhere)},
    )  # fmt: skip
    assert done.stdout == "succeeded\n", done.stderr
    assert (elsewhere / "told").read_text() == "Good morning.\n"


def test_a_system_crontab_has_users(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "crontab").write_text("17 * * * * root  cd / && run-parts /etc/cron.hourly\n")
    answer = cli("import", "--from", "crontab", "crontab", "--tz", "UTC", "--system", "--dry-run", "--json")
    (row,) = answer.json["jobs"]
    assert (answer.code, row["job"]) == (0, "run-parts"), "and not cd"
    assert row["notes"] == ["it ran as root; now it runs as the user of the node."]


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "import wants a SOURCE and --from"),
        (("shop_celery:app",), "import wants a SOURCE and --from"),
        (("--from", "celery"), "import wants a SOURCE and --from"),
        (("--from", "airflow", "x"), "invalid choice"),
        (("--from", "celery", "shop_celery"), "names no object"),
        (("--from", "celery", "shop_none:app"), "there is no module 'shop_none'"),
        (("--from", "celery", "shop_celery:nope"), "has no 'nope' that could be a Celery application"),
        (("--from", "celery", "shop_celery:CELERY_IS_NOT"), "has no 'CELERY_IS_NOT'"),
        (("--from", "celery", "shop_celery:crontab"), "shop_celery:crontab is a type, not a Celery application."),
        (("--from", "celery", "shop_celery:app", "--system"), "--system goes with --from crontab"),
        (("--from", "celery", "shop_celery:app", "--table", "x"), "--table goes with --from apscheduler-store"),
        (("--from", "apscheduler-store", "sqlite:///empty.sqlite", "--tz", "UTC"), "--tz goes with --from crontab or"),
        (
            ("--from", "celery", "shop_celery:app", "--dry-run", "--receipt", "r.jsonl"),
            "a dry run adds nothing, so --receipt does not go with it",
        ),
        (("--undo", "none.jsonl", "--tz", "UTC"), "--undo takes a receipt and nothing else but the store"),
        (("--from", "crontab", "empty.sqlite", "--tz", "UTC"), "there is no schedule in empty.sqlite."),
        (("--from", "crontab", "empty.sqlite", "--tz", "UTC", "--dry-run"), "there is no schedule in empty.sqlite."),
        (
            ("--from", "celery", "shop_half:app"),
            "cannot be set up: ModuleNotFoundError: No module named 'no_such_tasks'",
        ),
        (("--from", "crontab", "nofile", "--tz", "UTC"), "nofile cannot be read: No such file"),
        (("--from", "crontab", "nofile"), "a crontab needs --tz"),
        (("--from", "crontab", "nofile", "--tz", "Mars/Base"), "Mars/Base"),
        (
            ("--from", "apscheduler-store", "aps.sqlite"),
            "SOURCE has no scheme; write the URL of the database, such as sqlite:///jobs.sqlite. Nothing was imported.",
        ),
        (
            ("--from", "apscheduler-store", "oracle://x/y"),
            "oracle://x/y is not the URL of a database that can be read: sqlite, postgresql or mysql. Nothing was",
        ),
        (("--from", "apscheduler-store", "sqlite:///none.sqlite"), "there is no file none.sqlite"),
        (("--from", "apscheduler-store", "sqlite:///empty.sqlite"), "no such table: apscheduler_jobs"),
        (("--from", "apscheduler-store", "sqlite:///empty.sqlite", "--table", "a; drop"), "is not the name of a table"),
        (("--from", "django-celery-beat", "sqlite:///empty.sqlite"), "no such table"),
        (("--undo", "none.jsonl"), "nothing of Solocron's is at"),
    ],
)
def test_bad_input_is_one_clear_message_and_nothing_is_made(
    cli: Cli, shop: None, elsewhere: Path, given: tuple[str, ...], said: str
) -> None:
    sqlite3.connect(elsewhere / "empty.sqlite").close()
    (elsewhere / "empty.sqlite").touch()
    before = {path.name for path in elsewhere.iterdir()}
    answer = cli("import", *given)
    assert answer.code in (2, 3)
    assert answer.out == ""
    first, *following = answer.err.splitlines()
    assert said in first
    assert ".." not in first.replace("...", "")
    assert following in ([], ["next: solocron import --help"])
    assert {path.name for path in elsewhere.iterdir()} - {"__pycache__"} == before


def test_a_receipt_of_another_kind_or_namespace_removes_nothing(cli: Cli, shop: None, elsewhere: Path) -> None:
    cli("import", "--from", "celery", "shop_celery:app", "--for", "shop_handlers", "--receipt", "r.jsonl")
    before = definitions()
    (elsewhere / "bad.jsonl").write_text('{"jobs": 1}\n')
    (elsewhere / "other.jsonl").write_text(Path("r.jsonl").read_text().replace('"default"', '"billing"'))
    for name, said in (
        ("bad", "is not the receipt"),
        ("other", "is of the namespace 'billing'"),
        ("no", "No such file"),
    ):
        answer = cli("import", "--undo", f"{name}.jsonl", "--store", "sqlite:///jobs.db")
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err
    assert definitions() == before
    taken = cli("import", "--from", "celery", "shop_celery:app", "--for", "shop_handlers", "--receipt", "r.jsonl")
    assert taken.code == 2
    assert "r.jsonl exists already" in taken.err


def test_without_a_program_the_handlers_of_live_nodes_count(cli: Cli, shop: None) -> None:
    refused = cli("import", "--from", "celery", "shop_celery:app", "--store", "sqlite:///jobs.db")
    assert refused.code == 3
    scheduler = Scheduler("sqlite:///jobs.db")
    scheduler.register(lambda run: None, name="shop.nightly")
    with scheduler:
        rows = by_name(cli("import", "--from", "celery", "shop_celery:app", "--store", "sqlite:///jobs.db", "--json"))
    assert {name for name, row in rows.items() if row["result"] == "added"} == {"nightly"}


def test_handlers_that_are_nowhere_are_said_with_the_way_to_write_them(cli: Cli, shop: None, write: Write) -> None:
    write(
        "shop_bare.py", "from solocron import Scheduler\nscheduler = Scheduler()\nscheduler.register(print, name='x')\n"
    )
    answer = cli("import", "--from", "celery", "shop_celery:app", "--for", "shop_bare", "--store", "sqlite:///jobs.db")
    assert answer.code == 1
    assert "no node has a handler 'shop.nightly'" in answer.out
    assert "missing handlers: `--dry-run --handlers FILE` writes a module that has them" in answer.err


def test_a_name_that_is_taken_is_not_called_a_missing_handler(cli: Cli, shop: None) -> None:
    scheduler = Scheduler("sqlite:///jobs.db")
    scheduler.register(lambda run: None, name="other")
    with scheduler:
        scheduler.add("poll", "other", Every("1h"))
    answer = cli("import", "--from", "celery", "shop_celery:app", "--for", "shop_handlers")
    assert "poll: there is another job named poll; it was not changed." in answer.out
    assert "missing handlers" not in answer.err


@pytest.mark.parametrize("room", [80, 60])
def test_on_a_terminal_the_report_is_broken_between_words(
    cli: Cli, shop: None, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    plain = cli("import", "--from", "celery", "shop_celery:app", "--dry-run").out
    monkeypatch.setattr("solocron.cli.output.columns", lambda: room)
    answer = cli("import", "--from", "celery", "shop_celery:app", "--dry-run")
    assert max(map(len, answer.lines)) <= room
    assert answer.out.split() == plain.split()
