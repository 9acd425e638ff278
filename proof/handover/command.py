"""`make handover`: two nodes and three workers on every queue, every message sent twice, and faults in between.

A worker is killed in its body, one frozen past its lease, a node killed, the broker stopped, and emptied once. Then
every slot must have run once, or have its reason on record; no attempt's body may have begun twice. After the queues
come three beats and two plain workers of Celery, on each broker (`beats.py`).
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proof.handover import beats
from solocron import Scheduler
from solocron.clock import from_us
from solocron.testing.fleet import wait_until
from tests.servers import RabbitMQ, Redis, Server, processes

__all__ = ["BEATS", "QUEUES", "add_arguments", "execute"]

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
LEASE = 3.0
MODULE = "proof.handover.program"
PRELOADING = "solocron.carriers.rq_worker.PreloadingWorker"
QUEUES: dict[str, Callable[[str], list[str]]] = {
    "celery-redis": lambda url: _celery(),
    "celery-rabbitmq": lambda url: _celery(),
    "rq": lambda url: [str(BIN / "rq"), "worker", "--url", url, "--path", str(ROOT), "-w", PRELOADING, "cron"],
    "dramatiq": lambda url: [str(BIN / "dramatiq"), MODULE, "--processes", "1", "--threads", "2"],
    "taskiq": lambda url: [str(BIN / "taskiq"), "worker", f"{MODULE}:broker", "--workers", "1"],
}
"""The command of a worker of each queue."""
BEATS: dict[str, type[Server]] = {"beats-redis": Redis, "beats-rabbitmq": RabbitMQ}
"""Three beats of Celery on a broker."""
STAGES = {"taken over after": "taken", "sent after": "sent", "picked up after": "picked"}
"""What the program writes down of an attempt before its body begins."""
OPEN = frozenset({"due", "waiting", "offered", "running"})
"""What a slot may not be in the end."""
AWAY = 20.0
"""Seconds that the broker stands still, at most."""


def _celery() -> list[str]:
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    name = f"{random.randrange(10**9)}@h"
    return [sys.executable, "-m", "celery", "-A", MODULE, "worker", "-Q", "cron", "-c", "2", "-n", name, *quiet]


@dataclass(kw_only=True)
class Row:
    """The figures of one queue."""

    queue: str
    slots: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    bodies: int = 0
    doubled: int = 0
    unaccounted: int = 0
    """Slots that nothing is on record of, or that have not ended two minutes after the last fault."""
    takeover: float | None = None
    """Seconds from the kill of a worker in its body to the start of the next attempt."""
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds from the kill to what came before that start: where the time went."""
    refused: int = 0
    """Attempts whose body came to its end after its lease was over: the store has them as lost."""

    @property
    def good(self) -> bool:
        return self.doubled == 0 and self.unaccounted == 0 and self.slots > 0 and self.refused > 0

    def __str__(self) -> str:
        ends = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        took = "not measured" if self.takeover is None else f"{self.takeover:.1f} s after the kill (lease {LEASE:g} s)"
        stages = ", ".join(f"{what} {after:.1f} s" for what, after in self.stages.items())
        return (
            f"{'ok  ' if self.good else 'BAD '} {self.queue}: {self.slots} slots ({ends}), {self.bodies} bodies, "
            f"{self.doubled} doubled, {self.unaccounted} unaccounted for, {self.refused} stale results refused; "
            f"next attempt {took}{': ' if stages else ''}{stages}"
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    known = ", ".join([*QUEUES, *BEATS])
    parser.add_argument("queues", nargs="*", metavar="QUEUE", help=f"of {known} (default: all)")
    parser.add_argument("--slots", type=int, default=120, help="seconds, and so slots, of each (default: 120)")
    parser.add_argument("--beside", action="store_true", help="plain beats and RedBeat too, under the same faults")


def execute(options: argparse.Namespace) -> int:
    unknown = sorted(set(options.queues) - {*QUEUES, *BEATS})
    if unknown:
        print(f"there is no queue {unknown[0]!r}; there are {', '.join([*QUEUES, *BEATS])}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends every process that was started here
    verdicts = []
    for queue in options.queues or [*QUEUES, *BEATS]:
        kind: type[Server] = RabbitMQ if queue.endswith("rabbitmq") else Redis
        if kind.binary() is None:
            print(f"{queue}: {kind.name} is not installed: {kind.hint}", file=sys.stderr)
            continue
        for one in _rows(queue, kind, options):
            print(one, flush=True)
            verdicts.append(one.good)
    return 0 if verdicts and all(verdicts) else 1


def _rows(queue: str, kind: type[Server], options: argparse.Namespace) -> Iterator[Row | beats.BeatRow]:
    if queue in QUEUES:
        yield _perform(queue, kind, options.slots)
        return
    for which in (beats.OWN, *(beats.BESIDE if options.beside else ())):
        yield beats.perform(which, kind, options.slots)


def _perform(queue: str, kind: type[Server], seconds: int) -> Row:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="solocron-handover-")))
        server = stack.enter_context(kind(settings={} if kind is RabbitMQ else {"appendfsync": "no"}))
        fleet = Fleet(queue, server, folder)
        stack.callback(fleet.close)
        return fleet.run(seconds)


class Fleet:
    """Two nodes and three workers, and what is done to them."""

    def __init__(self, queue: str, server: Server, folder: Path) -> None:
        self._queue = queue
        self._server = server
        self._folder = folder
        self._store = f"sqlite:///{folder}/handover.db"
        self._env = {
            **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), "HANDOVER_QUEUE": queue,
            "HANDOVER_BROKER": server.url, "HANDOVER_STORE": self._store, "HANDOVER_LEDGER": str(folder / "ledger"),
        }  # fmt: skip
        self._started: list[subprocess.Popen[bytes]] = []
        self.workers = [self._start(QUEUES[queue](server.url), f"worker{n}") for n in range(3)]
        self.nodes = [self._start([sys.executable, "-m", MODULE], f"node{n}") for n in range(2)]

    def _start(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            made = subprocess.Popen(
                command, cwd=self._folder, env=self._env, stdout=log, stderr=log, start_new_session=True
            )
        self._started.append(made)
        return made

    def lines(self, what: str) -> list[list[str]]:
        """What bodies wrote: run, attempt, fence, process, its parent, time."""
        ledger = self._folder / "ledger"
        found = ledger.read_text().splitlines() if ledger.exists() else []
        return [line.split()[1:] for line in found if line.startswith(what)]

    def run(self, seconds: int) -> Row:
        row = Row(queue=self._queue)
        wait_until(lambda: len(self.lines("ended")) >= 3, within=180, what=f"{self._queue}: the first runs")
        began = datetime.now(UTC)
        step = seconds / 6
        self._sleep(step)
        self._kill_in_a_body(row)
        self._sleep(step)
        self._freeze_in_a_body()
        self._kill(self.nodes[0])
        self.nodes[0] = self._start([sys.executable, "-m", MODULE], "node0")
        self._sleep(step)
        self._server.freeze()
        self._sleep(min(step, AWAY))
        self._server.thaw()
        self._empty()
        self._sleep(2 * step + max(0, step - AWAY))
        return self._judge(row, began)

    def _body(self) -> list[str]:
        """Return what a body wrote that runs at this moment."""
        return wait_until(
            lambda: next((one for one in self.lines("began")[-1:] if one not in self._over()), None),
            within=60, what="a body runs",
        )  # fmt: skip

    def _freeze_in_a_body(self) -> None:
        """Freeze the process that a body runs in until its lease is over; it goes on, and its result is stale."""
        while True:
            body = self._body()
            frozen = processes.tree(int(body[3]))
            processes.send(signal.SIGSTOP, frozen)
            if body not in self._over():
                break
            processes.send(signal.SIGCONT, frozen)  # it had come to its end before
        self._sleep(2 * LEASE)
        processes.send(signal.SIGCONT, frozen)

    def _kill_in_a_body(self, row: Row) -> None:
        """Kill the worker that a body runs in; note after how long the next attempt of that run began."""
        run, attempt, _, pid, parent, _ = self._body()
        tree = [*processes.tree(int(pid))]
        worker = next((one for one in self.workers if one.pid in (int(pid), int(parent))), None)
        killed = time.time()
        if worker is not None:
            self._kill(worker)
            self.workers[self.workers.index(worker)] = self._start(QUEUES[self._queue](self._server.url), "worker")
        else:
            processes.send(signal.SIGKILL, tree)
        try:
            found = wait_until(
                lambda: next((o for o in self.lines("began") if o[0] == run and int(o[1]) > int(attempt)), None),
                within=60, what="the next attempt",
            )  # fmt: skip
        except TimeoutError:
            return  # it had ended just before
        row.takeover = float(found[5]) - killed
        for what, ledger in STAGES.items():
            times = [float(one[-1]) for one in self.lines(ledger) if one[:2] == found[:2]]
            row.stages |= {what: times[0] - killed} if times else {}

    def _over(self) -> list[list[str]]:
        ended = {(one[0], one[1]) for one in self.lines("ended")}
        return [one for one in self.lines("began") if (one[0], one[1]) in ended]

    def _empty(self) -> None:
        """Let the broker lose what it has."""
        if isinstance(self._server, Redis):
            import redis

            with redis.Redis.from_url(self._server.url) as client:
                client.flushdb()
        else:
            from kombu.connection import Connection

            with Connection(self._server.url) as connection:  # type: ignore[no-untyped-call]
                connection.default_channel.queue_purge("cron")

    def _judge(self, row: Row, began: datetime) -> Row:
        scheduler = Scheduler(self._store)
        end = from_us(scheduler.open().store.clock())
        try:
            wait_until(
                lambda: not _open(scheduler, began, end), within=120, what=lambda: str(_open(scheduler, began, end)[:5])
            )
        except TimeoutError:
            pass  # counted below
        slots = scheduler.slots("secondly", began, end)
        ended = {(one[0], int(one[1])) for one in self.lines("ended")}
        late = [view for run, attempt in ended if attempt > 1 for view in scheduler.attempts(run)]
        row.refused = sum(view.status == "lost" and (view.id, view.attempt) in ended for view in late)
        scheduler.stop()
        row.slots = len(slots)
        row.outcomes = Counter(slot.status for slot in slots)
        row.unaccounted = sum(slot.status in OPEN or slot.status == "unaccounted" for slot in slots)
        bodies = Counter((one[0], one[1]) for one in self.lines("began"))
        row.bodies, row.doubled = sum(bodies.values()), sum(count - 1 for count in bodies.values())
        return row

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _signal(self, process: subprocess.Popen[bytes], how: signal.Signals) -> None:
        processes.send(how, processes.tree(process.pid))

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        self._signal(process, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                self._kill(process)


def _open(scheduler: Scheduler, began: datetime, end: datetime) -> list[Any]:
    """The slots that have not come to an end."""
    return [slot for slot in scheduler.slots("secondly", began, end) if slot.status in OPEN]
