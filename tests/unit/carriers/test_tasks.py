"""The task that each carrier puts into its queue: what it drops it tells, and it prepares its process first."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from solocron import Message, Run, Scheduler
from solocron.errors import ConfigurationError

AWAY = "redis://127.0.0.1:1/0"
HERE = __name__
calls: list[str] = []


def boot() -> None:
    """What `Scheduler.setup` names."""
    calls.append("setup")


def fail() -> None:
    raise OSError("no licence")


class Task:
    """A scheduler whose job runs behind one carrier; the task is called here as a worker of its queue does."""

    def __init__(self, kind: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[Message] = []
        self.scheduler = Scheduler(f"sqlite:///{place}/jobs.db", enabled=True, lease="3s")
        carrier, self.call = getattr(self, kind)(monkeypatch)
        carrier.publish = self.messages.append
        self.scheduler.carrier("queue", carrier)

        @self.scheduler.cron("0 3 1 1 *", name="books", run_in="queue")
        def books(run: Run) -> None:
            calls.append(run.id)

    def celery(self, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Callable[[Any], Any]]:
        from celery import Celery

        from solocron.carriers.celery import CeleryCarrier

        app = Celery("shop", broker="memory://", set_as_current=False)
        return CeleryCarrier(app), lambda message: app.tasks["solocron.run"](message)

    def dramatiq(self, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Callable[[Any], Any]]:
        from dramatiq.brokers.stub import StubBroker

        from solocron.carriers.dramatiq import DramatiqCarrier

        broker = StubBroker()
        return DramatiqCarrier(broker), lambda message: broker.actors["solocron_run"].fn(message)

    def taskiq(self, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Callable[[Any], Any]]:
        from taskiq import InMemoryBroker

        from solocron.carriers.taskiq import TaskiqCarrier

        broker = InMemoryBroker()

        def call(message: Any) -> None:
            task = broker.find_task("solocron_run")
            assert task is not None
            asyncio.run(task.original_func(message))

        return TaskiqCarrier(broker), call

    def rq(self, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Callable[[Any], Any]]:
        import redis
        from rq import Queue

        from solocron.carriers.rq import RQCarrier, carry_out

        program = types.ModuleType("rq_program")
        program.scheduler = self.scheduler  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "rq_program", program)
        queue = Queue("cron", connection=redis.Redis.from_url(AWAY))
        return RQCarrier(queue, scheduler="rq_program:scheduler"), lambda got: carry_out("rq_program:scheduler", got)

    def hand_over(self) -> dict[str, Any]:
        """Return the message of a run as a worker gets it."""
        self.scheduler.tick()
        self.scheduler.trigger("books")
        self.scheduler.tick()
        text = json.dumps(self.messages[-1].to_json())
        found: dict[str, Any] = json.loads(text)
        return found


@pytest.fixture(params=["celery", "dramatiq", "taskiq", "rq"])
def task(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    calls.clear()
    made = Task(request.param, tmp_path, monkeypatch)
    yield made
    made.scheduler.stop("1s")


@pytest.mark.may_leak("a StubBroker and an InMemoryBroker keep threads of their own")
def test_what_is_dropped_is_told_once_with_what_to_do(task: Task, caplog: pytest.LogCaptureFixture) -> None:
    """A foreign, a stale, a forged and a broken message run nothing, and each leaves one warning."""
    good = task.hand_over()
    task.call(good)
    assert calls == [good["run"]]
    with caplog.at_level(logging.WARNING, logger="solocron"):
        for message, says in [
            ({**good, "namespace": "theirs"}, "for the namespace 'theirs', and this worker serves default; give each"),
            (good, "picked up before, has ended, or was never handed over; nothing for a copy"),
            ({**good, "run": "books@ffffffffffffffff"}, "never handed over; nothing for a copy"),
            ({**good, "job": "other"}, "the store has no job of that name; look whether this worker has the store"),
            ({"to": "all"}, "not a message of Solocron (KeyError('namespace')); nothing was run; look at what sends"),
            ("[]", "look at what sends to solocron"),
        ]:
            caplog.clear()
            task.call(message)
            (record,) = caplog.records
            assert record.levelno == logging.WARNING
            assert record.event == "message dropped"  # type: ignore[attr-defined]
            assert says in record.getMessage()
            assert not record.getMessage().endswith(" []"), "no brackets around nothing"
    assert calls == [good["run"]]


@pytest.mark.may_leak("a StubBroker and an InMemoryBroker keep threads of their own")
def test_the_process_is_prepared_once_before_the_first_body(task: Task) -> None:
    task.scheduler.setup(f"{HERE}:boot")
    first = task.hand_over()
    assert calls == []
    task.call(first)
    second = task.hand_over()
    task.call(second)
    assert calls == ["setup", first["run"], second["run"]]


@pytest.mark.may_leak("a StubBroker and an InMemoryBroker keep threads of their own")
def test_a_process_that_cannot_be_prepared_picks_nothing_up(task: Task) -> None:
    """The error reaches the queue, which tells it; the run waits, and another process gets the next message."""
    task.scheduler.setup(f"{HERE}:fail")
    message = task.hand_over()
    with pytest.raises(ConfigurationError, match=r"fail failed: OSError\('no licence'\). Nothing was picked up"):
        task.call(message)
    assert calls == []
    assert task.scheduler.get_run(message["run"]).status == "offered"


def test_two_apps_of_celery_in_one_process_have_a_task_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Celery shares a task among all apps unless it is told not to: the second app would serve the first one's runs."""
    from celery import Celery

    from solocron.carriers.celery import CeleryCarrier

    tasks = []
    for name in ("one", "two"):
        app = Celery(name, broker="memory://", set_as_current=False)
        CeleryCarrier(app).attach(name, Scheduler(f"sqlite:///{tmp_path}/{name}.db", namespace=name))
        tasks.append(app.tasks["solocron.run"])
    tasks[1]({"namespace": "three", "job": "x", "run": "x", "attempt": 1})
    assert "this worker serves two;" in caplog.text


def test_a_publication_to_celery_opens_no_result_backend() -> None:
    """Celery opens it anew in each thread, which took longer than the message itself."""
    from celery import Celery

    from solocron.carriers.celery import CeleryCarrier

    class App(Celery):  # type: ignore[misc]
        def _get_backend(self) -> Any:
            raise AssertionError("nothing here waits for a result")

    app = App("shop", broker="memory://", set_as_current=False)
    carrier = CeleryCarrier(app, queue="cron")
    carrier.publish(Message(id="x", namespace="n", job="j", run="j@1", attempt=1, key="", slot="", fence=1))
    with app.connection_for_read() as connection, connection.SimpleQueue("cron") as queue:
        (args, _, _) = queue.get_nowait().payload
        assert args[0]["run"] == "j@1"
    carrier.close()
