"""The command line in this process, and a namespace in memory for it to look at."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from solocron import Scheduler
from solocron.clock import SECOND
from solocron.stores.contract import Store
from solocron.stores.url import make_store

__all__ = ["DUE", "ONE_JOB", "OWN", "Answer", "Cli", "Shop", "Started", "Write", "moment", "shop"]

ONE_JOB = """
    from solocron import every

    @every("1h")
    def invoices():
        return "sent"
"""
"""A module with one job and no scheduler."""

OWN = """
    from solocron import Scheduler

    scheduler = Scheduler("memory://own", node="own", pools=("gpu",), lease="9s", beat="2s")

    @scheduler.every("1h")
    def invoices():
        return "sent"
"""
"""A module with a scheduler of its own."""

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
"""A module whose one job is due; `name` and `body` are to be filled in."""

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Cli = Callable[..., Answer]
Write = Callable[[str, str], Path]
Started = list[tuple[Scheduler, timedelta]]


@dataclass(frozen=True, slots=True)
class Shop:
    """A world in memory with a few jobs: `invoices` works, `broken` raises, `report` has a zone."""

    url: str
    scheduler: Scheduler
    store: Store

    def tick(self) -> None:
        self.scheduler.tick()

    def later(self, seconds: float) -> None:
        """Move the store's time on."""
        self.store.shift_clock(round(seconds * SECOND))

    def ran(self, job: str, **options: Any) -> str:
        """Trigger a job, let it run, and return the run's id."""
        run = self.scheduler.trigger(job, **options)
        self.tick()
        return run


def shop() -> Shop:
    url = f"memory://shop-{next(_numbers)}"
    scheduler = Scheduler(url, node="kitchen")

    @scheduler.every("1h", name="invoices", retries=1)
    def invoices() -> dict[str, int]:
        return {"sent": 3}

    @scheduler.every("1h", name="broken")
    def broken() -> None:
        raise ValueError("no paper\x1b[2Jin the printer")

    @scheduler.cron("30 2 * * *", name="report", tz="America/New_York")
    def report() -> None: ...

    scheduler.tick()
    return Shop(url, scheduler, make_store(url))


def moment(given: str) -> datetime:
    """An instant as `--json` writes it; fails for anything that is not UTC."""
    assert given.endswith("Z")
    return datetime.fromisoformat(given)
