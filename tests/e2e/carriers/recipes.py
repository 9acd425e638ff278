"""Runs the block of one section of the page of recipes, in a process of its own: `recipes.py SECTION FOLDER [URL]`.

Django is set up once in a process; arq and Docket have environments of their own. Prints what the body did as JSON.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from solocron import Run, Scheduler

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "queue-recipes.md"


def recipe(name: str) -> str:
    """The first block of a section."""
    found = re.search(rf"^## {re.escape(name)}\n\n```\w+[^\n]*\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def django_tasks(space: dict[str, Any], url: str) -> Any:
    """Execute the recipe on Django's own backend that only keeps what is enqueued; return a worker of it."""
    import django
    from django.conf import settings

    package = "django.tasks" if django.VERSION >= (6,) else "django_tasks"  # the backport
    backend = f"{package}.backends.dummy.DummyBackend"
    settings.configure(TASKS={"default": {"BACKEND": backend, "QUEUES": ["cron"]}})
    django.setup()
    exec(recipe("django.tasks").replace("django.tasks", package), space)
    queue: list[Any] = []  # a backend belongs to the thread that enqueues, and the signal tells every thread

    def keep(task_result: Any, **_: Any) -> None:
        queue.append(task_result)

    import_module(f"{package}.signals").task_enqueued.connect(keep, weak=False)

    def work() -> None:
        for one in queue:
            one.task.call(*one.args, **one.kwargs)

    return work


def arq(space: dict[str, Any], url: str) -> Any:
    """Execute the recipe on a Redis; return a worker that ends when its queue is empty."""
    from arq.worker import run_worker

    exec(recipe("arq").replace("redis://...", url), space)
    return lambda: run_worker(space["WorkerSettings"], burst=True)


def docket(space: dict[str, Any], url: str) -> Any:
    """Execute the recipe on a Redis; return a worker that ends when its queue is empty."""
    from docket import Docket, Worker

    exec(recipe("Docket").replace("redis://...", url), space)

    async def work() -> None:
        async with Docket(name="cron", url=url) as place:
            for task in space["tasks"]:
                place.register(task)
            async with Worker(place) as worker:
                await worker.run_until_finished()

    return lambda: asyncio.run(work())


def main(section: str, folder: str, url: str = "") -> None:
    scheduler = Scheduler(f"sqlite:///{folder}/shop.db")
    ran: list[str] = []

    @scheduler.cron("0 3 * * *", run_in="queue")
    def close_books(run: Run) -> None:
        ran.append(run.id)

    space: dict[str, Any] = {"scheduler": scheduler, "__name__": "shop"}
    work = {"django.tasks": django_tasks, "arq": arq, "docket": docket}[section](space, url)
    carrier = next(made for name, made in space.items() if name.endswith("Carrier"))
    scheduler.carrier("queue", carrier())
    scheduler.tick()
    run = scheduler.trigger("close_books")
    scheduler.tick()
    before = str(scheduler.get_run(run).status)
    work()
    after = str(scheduler.get_run(run).status)
    scheduler.stop()
    sys.stdout.write(json.dumps({"once": ran == [run], "before": before, "after": after}))


if __name__ == "__main__":
    main(*sys.argv[1:])
