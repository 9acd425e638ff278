"""Three Celery beats on one store send every slot once, and go on when one of them is killed."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.schedules import schedule, solar
from celery.utils.imports import load_extension_class_names, symbol_by_name
from kombu import Connection

from solocron.carriers.beat import BeatScheduler
from solocron.testing.fleet import wait_until
from tests.servers import RabbitMQ

HERE = Path(__file__).parent
BEAT = ["-m", "celery", "-A", "beat_shop", "beat", "-S", "solocron", "-l", "WARNING"]
Beats = list[subprocess.Popen[bytes]]
LAMPS = """
from celery import Celery
from celery.schedules import solar

app = Celery("lamps", broker="memory://")
app.conf.beat_schedule = {"lamps": {"task": "lamps.light", "schedule": solar("sunset", -37.8, 144.9)}}
"""


@pytest.fixture
def queue(tmp_path: Path) -> str:
    return f"beat-{tmp_path.name}"


@pytest.fixture
def beats(rabbitmq: RabbitMQ, queue: str, tmp_path: Path) -> Iterator[Beats]:
    env = {**os.environ, "SHOP_BROKER": rabbitmq.url, "SHOP_QUEUE": queue}
    env["SHOP_STORE"] = f"sqlite:///{tmp_path}/beat.db"
    started = []
    for n in range(3):
        with (tmp_path / f"beat{n}.log").open("wb") as log:
            pid = ["--pidfile", str(tmp_path / f"beat{n}.pid")]
            started.append(subprocess.Popen([sys.executable, *BEAT, *pid], cwd=HERE, env=env, stdout=log, stderr=log))
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_every_slot_is_sent_once_by_one_of_them(rabbitmq: RabbitMQ, queue: str, beats: Beats) -> None:
    headers: list[dict[str, Any]] = []
    with Connection(rabbitmq.url) as connection, connection.SimpleQueue(queue) as box:

        def sent() -> int:
            with suppress(box.Empty):
                while True:
                    message = box.get(timeout=0.1)
                    message.ack()
                    headers.append(message.headers)
            return len(headers)

        wait_until(lambda: sent() >= 3, within=200, what="the beats send")
        beats[0].send_signal(signal.SIGKILL)
        before = sent()
        wait_until(lambda: sent() >= before + 4, within=200, what="the other beats go on")
    slots = [one["solocron-slot"] for one in headers]
    # The one that was killed may have died between sending and recording it: then the copy has the id of the first.
    assert len(slots) - len(set(slots)) <= 1
    assert len({(one["solocron-slot"], one["id"]) for one in headers}) == len(set(slots))
    assert {one["task"] for one in headers} == {"shop.say"}
    assert (headers[0]["argsrepr"], headers[0]["kwargsrepr"]) == ("[1]", "{'word': 'hello'}")
    assert headers[0]["colour"] == "blue"
    for process in beats[1:]:
        process.terminate()
    assert [process.wait(timeout=30) for process in beats[1:]] == [0, 0]


def test_celery_finds_it_by_its_short_and_its_long_name() -> None:
    named = dict(load_extension_class_names("celery.beat_schedulers"))
    assert symbol_by_name("solocron", named) is BeatScheduler
    assert symbol_by_name("solocron.carriers.celery:BeatScheduler") is BeatScheduler


def test_what_has_no_counterpart_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = Celery("shop", broker="memory://")
    app.conf.solocron_store = f"sqlite:///{tmp_path}/beat.db"
    app.conf.beat_cron_starting_deadline = 90
    own = {"catch_up": "skip", "overlap": "queue", "start_within": "2m"}
    app.conf.beat_schedule = {
        "x y": {"task": "t", "schedule": schedule(3600, relative=True, app=app)},
        "own": {"task": "t", "schedule": timedelta(hours=1), "options": {"queue": "cron", "solocron": own}},
    }
    with caplog.at_level(logging.WARNING, "solocron"):
        beat = BeatScheduler(app)
    try:
        assert [record.event for record in caplog.records] == ["relative ignored"]
        (job,) = [one for one in beat.solocron.jobs() if one.name.startswith("x-y-")]
        assert job.start_within is not None
        assert (job.start_within.total_seconds(), job.hand_over) == (90, {"target": "t"})
        job = beat.solocron.get_job("own")
        assert job.start_within is not None
        assert (str(job.catch_up), str(job.overlap), job.start_within.total_seconds()) == ("skip", "queue", 120)
        assert job.hand_over == {"target": "t", "queue": "cron"}, "what is Solocron's is not sent"
    finally:
        beat.close()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"schedule": 1.0, "options": {"solocron": {"colour": 1}}}, "beat entry 'x': 'colour' is not one of"),
        ({"schedule": solar("sunset", -37.8, 144.9)}, "is solar, which has no counterpart: give it a cron expression"),
        (None, "this beat needs a store that all beats share: set app.conf.solocron_store or SOLOCRON_STORE"),
    ],
    ids=["option", "solar", "no store"],
)
def test_mistakes_are_told_in_one_line(
    entry: dict[str, Any] | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.delenv("SOLOCRON_STORE", raising=False)
    app = Celery("shop", broker="memory://", set_as_current=False)
    if entry is not None:
        app.conf.solocron_store = f"sqlite:///{tmp_path}/beat.db"
        app.conf.beat_schedule = {"x": {"task": "t", **entry}}
    with pytest.raises(SystemExit) as ended:
        BeatScheduler(app)
    assert ended.value.code == 1
    (told,) = [record for record in caplog.records if record.name == "solocron"]
    assert (told.levelname, says in told.getMessage(), "\n" in told.getMessage()) == ("CRITICAL", True, False)


def test_celery_beat_shows_a_mistake_as_one_line(tmp_path: Path) -> None:
    """What it raises would be written into its log letter by letter."""
    (tmp_path / "lamps.py").write_text(LAMPS)
    command = [sys.executable, "-m", "celery", "-A", "lamps", "beat", "-S", "solocron", "--pidfile", ""]
    env = {**os.environ, "SOLOCRON_STORE": f"sqlite:///{tmp_path}/beat.db"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)
    (line,) = done.stderr.splitlines()
    assert "CRITICAL/MainProcess] beat entry 'lamps': 'sunset' is solar" in line
    assert done.returncode == 1


def test_a_broker_that_is_away_is_told_by_log_and_run_which_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = Celery("shop", broker="redis://127.0.0.1:1/0", set_as_current=False)
    app.conf.solocron_store = f"sqlite:///{tmp_path}/beat.db"
    app.conf.beat_schedule = {"say": {"task": "shop.say", "schedule": 1.0}}
    beat = BeatScheduler(app)

    def told() -> Any:
        return next((one for one in caplog.records if getattr(one, "event", "") == "hand-over failed"), None)

    try:
        wait_until(told, within=60, what="it is told")
        says = "not accepted by celery-beat (NotAccepted: no connection to the broker: "
        assert told().reason.startswith(says)
        wait_until(lambda: says in str(beat.solocron.get_run(told().run).reason), within=60, what="the run says it")
        assert beat.solocron.get_run(told().run).status == "waiting"
    finally:
        beat.close()


def test_the_rows_of_django_celery_beat_are_sent_as_they_are_edited(tmp_path: Path) -> None:
    """In a process of its own: Django is set up once in a process."""
    command = [sys.executable, str(HERE / "tables.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    say, once, late, new, next_century = "task:say-it-", "task:once", "task:late", "task:new", "task:next-century"
    # "quick" is due each second and sent once: it is gone before the tables are looked at again.
    assert [name for name in found["jobs"] if name.startswith("task:") and name != "task:quick"] == [
        late,
        next_century,
        once,
        next(name for name in found["jobs"] if name.startswith(say)),
    ]
    assert found["bounded"] == ["2127-01-01T00:00:00Z", "2127-12-31T23:59:59.999999Z", "Europe/Paris"]
    assert (found["last_run_at"], found["once"], found["looks again in"]) == (True, [1, 1, 1], 1.5)
    assert found["seen within"] < 2.0 + 4.0, "two seconds, and what a busy machine takes from them"
    assert [name for name in found["again"] if name.startswith("task:")] == [new, next_century]
    solar, taken = found["warned"]
    assert "beat_schedule has an entry of the same name" in taken + solar
    assert "solar, which has no counterpart" in taken + solar
