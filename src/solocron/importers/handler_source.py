"""Write a module with a function for each handler that imported jobs call: a start that runs, to be edited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solocron.importers.entry import ImportedJob

__all__ = ["handler_source"]

_HEAD = '''"""Handlers of the jobs that `solocron import --from {origin}` adds. The file is yours: edit it."""

'''
_SCHEDULER = "scheduler = Scheduler()\n"


def handler_source(jobs: Iterable[ImportedJob], origin: str, *, app: str | None = None) -> str:
    """Return the source of a module; `app` is the Celery application as `module:name`."""
    found = list(jobs)
    if origin == "crontab":
        return _HEAD.format(origin=origin) + _commands(found)
    handlers = sorted({job.handler for job in found})
    if origin == "apscheduler-store":
        return _HEAD.format(origin=origin) + _functions(handlers)
    return _HEAD.format(origin=origin) + _tasks(handlers, app)


def _tasks(handlers: Sequence[str], app: str | None) -> str:
    module, _, name = (app or "").partition(":")
    if app is None:
        imported = "from celery import current_app as app  # or your project's own: from project.celery import app"
    else:
        first, _, rest = name.partition(".")
        imported = f"from {module} import {first} as app" if not rest else f"import {module}\n\napp = {module}.{name}"
    names = "".join(f"    {name!r},\n".replace("'", '"') for name in handlers)
    return f'''from collections.abc import Callable

{imported}
from solocron import Run, Scheduler

{_SCHEDULER}

def send(task: str) -> Callable[[Run], str]:
    """One slot is one message: a Celery worker does the work."""

    def handler(run: Run) -> str:
        message = run.payload
        return app.send_task(task, message["args"], message["kwargs"], **message["options"]).id

    return handler


for task in (
{names}):
    scheduler.register(send(task), name=task)
'''


def _functions(handlers: Sequence[str]) -> str:
    imports, calls = [], []
    for name in handlers:
        module, _, function = name.partition(":")
        imports.append(f"import {module}\n")
        calls.append(f'scheduler.register(call({module}.{function}), name="{name}")\n')
    return f'''from collections.abc import Callable
from typing import Any

{"".join(sorted(set(imports)))}
from solocron import Run, Scheduler

{_SCHEDULER}

def call(function: Callable[..., Any]) -> Callable[[Run], Any]:
    """Call a function with the arguments that the job was added with."""

    def handler(run: Run) -> Any:
        return function(*run.payload["args"], **run.payload["kwargs"])

    return handler


{"".join(calls)}'''


def _commands(jobs: Sequence[ImportedJob]) -> str:
    parts = []
    for number, job in enumerate(jobs, start=1):
        assert job.command is not None
        function = f"command_{number}"
        body = job.command.source(function).partition("\n")[2]  # without the decorator: the schedule is in the store
        parts.append(f'{body}\n\nscheduler.register({function}, name="{job.handler}")\n')
    environment = "import os\n" if any("os.environ" in part for part in parts) else ""
    head = f"{environment}import subprocess\n\nfrom solocron import Scheduler\n\n{_SCHEDULER}"
    return "\n\n".join([head, *parts])
