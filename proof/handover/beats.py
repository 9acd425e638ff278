"""Three beats and two plain workers under faults: `celery beat -S solocron`, and beside it plain beats and RedBeat.

The beat that sent last is killed, the one that sent last after that is frozen, and the broker is restarted. What ends
is started again, as a container platform does. The workers have no Solocron: they write down each message by its id.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

from solocron.testing.fleet import wait_until
from tests.servers import Postgres, Redis, Server, processes

__all__ = ["BESIDE", "OWN", "BeatRow", "perform"]

ROOT = Path(__file__).resolve().parents[2]
MODULE = "proof.handover.beat_program"
PERIODS = {"secondly": 1.0, "every-third": 3.0, "minutely": 60.0}
"""Entries of the program, which cannot be imported without its environment, and the seconds between their slots."""
FROZEN = 15.0
"""Seconds for which a beat is frozen: past the lease, and past the shortest lock that RedBeat is given here."""
AROUND = 5.0
"""Seconds around a fault in which a second copy may have been sent."""

OWN = "own"
BESIDE = {"plain": "plain beats", "redbeat": "RedBeat", "redbeat-5s": "RedBeat with a lock of 5 s"}
"""What is put under the same faults, with no judgement."""
SCHEDULERS = {
    OWN: ["-S", "solocron"],
    "plain": ["-S", "celery.beat:PersistentScheduler"],
    "redbeat": ["-S", "redbeat.RedBeatScheduler"],
    "redbeat-5s": ["-S", "redbeat.RedBeatScheduler"],
}


@dataclass(frozen=True, slots=True)
class Sent:
    """One message, as a worker had it."""

    entry: str
    id: str
    slot: str
    origin: str
    fence: str
    at: float


@dataclass(kw_only=True)
class BeatRow:
    """The figures of three beats of one kind."""

    kind: str
    broker: str
    slots: int = 0
    sent: int = 0
    """Messages of these slots. A message that the broker delivers again counts once."""
    missing: int = 0
    copies: int = 0
    astray: int = 0
    """Copies that no fault explains, or that have another task id than the first."""
    silence: float = 0.0
    """The longest time without a message of the entry of every second."""
    silent_from: float = 0.0
    """Seconds from the beginning to that silence."""
    faults: tuple[tuple[float, float], ...] = ()
    """When the kill, the freeze and the restart of the broker began and were over, in seconds from the beginning."""
    restarts: int = 0
    """How often a beat ended by itself, and was started again."""
    last_words: str = ""
    """The last line that such a beat wrote."""

    @property
    def good(self) -> bool:
        return self.kind != OWN or (self.slots > 0 and self.missing == 0 and self.astray == 0)

    def __str__(self) -> str:
        name = BESIDE.get(self.kind, "beats of Solocron")
        verdict = "    " if self.kind != OWN else "ok  " if self.good else "BAD "
        astray = f" ({self.astray} of them not around a fault, or under another id)" if self.kind == OWN else ""
        ended = f"; {self.restarts} beats ended by themselves: {self.last_words}" if self.restarts else ""
        faults = ", ".join(f"{since:.0f} to {until:.0f} s" for since, until in self.faults)
        return (
            f"{verdict} three {name} on {self.broker}: {self.slots} slots, {self.sent} messages, {self.missing} slots "
            f"without one, {self.copies} second copies{astray}; longest silence {self.silence:.1f} s, "
            f"from {self.silent_from:.0f} s on (faults: {faults}){ended}"
        )


def perform(kind: str, server: type[Server], seconds: float) -> BeatRow:
    """Run three beats of one kind for some time, and return what became of their slots."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="solocron-beats-")))
        broker = stack.enter_context(server(settings={"appendfsync": "everysec"} if server is Redis else {}))
        redis = broker if server is Redis else stack.enter_context(Redis()) if kind.startswith("redbeat") else None
        store = stack.enter_context(Postgres()) if kind == OWN else None
        beats = Beats(kind, broker, folder, store=store.url if store else "", redis=redis.url if redis else "")
        stack.callback(beats.close)
        return beats.run(seconds)


class Beats:
    """Three beats, two workers, and what is done to them."""

    def __init__(self, kind: str, broker: Server, folder: Path, *, store: str, redis: str) -> None:
        self._kind = kind
        self._broker = broker
        self._folder = folder
        self._ledger = folder / "ledger"
        self._env = {
            **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), "BEAT_KIND": kind,
            "BEAT_BROKER": broker.url, "BEAT_REDIS": redis, "BEAT_STORE": store,
            "BEAT_LEDGER": str(self._ledger), **({"BEAT_LOOP": "1"} if kind == "redbeat-5s" else {}),
        }  # fmt: skip
        self._row = BeatRow(kind=kind, broker=broker.name)
        self._faults: list[tuple[float, float]] = []
        """From when to when each lasted."""
        self._killed: set[int] = set()
        self._started: list[subprocess.Popen[bytes]] = []
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-P", "threads", "-c", "2"]
        for n in range(2):
            self._start(["worker", "-n", f"worker{n}@h", *quiet], f"worker{n}")
        self._beats = [self._start_beat(n) for n in range(3)]
        self._closing = threading.Event()
        self._platform = threading.Thread(target=self._start_again, daemon=True)
        self._platform.start()

    def _start(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            made = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", MODULE, *command, "-l", "WARNING"], cwd=self._folder,
                env=self._env, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._started.append(made)
        return made

    def _start_beat(self, n: int) -> subprocess.Popen[bytes]:
        own = ["--pidfile", "", "-s", str(self._folder / f"schedule{n}")]
        return self._start(["beat", *SCHEDULERS[self._kind], *own], f"beat{n}")

    def _start_again(self) -> None:
        """Start each beat again that has ended, a second later."""
        while not self._closing.wait(1.0):
            for n, beat in enumerate(self._beats):
                if beat.poll() is None:
                    continue
                if beat.pid not in self._killed:
                    self._row.restarts += 1
                    said = (self._folder / f"beat{n}.log").read_text(errors="replace").split("\n")
                    self._row.last_words = next((line for line in reversed(said) if line.strip()), "")[:200]
                self._beats[n] = self._start_beat(n)

    def sent(self) -> list[Sent]:
        """Return each message that arrived, once, by the time of its sending."""
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        words = [line.split(" ") for line in lines if line.count(" ") == 5]
        found = {Sent(entry, id, slot, origin, fence, float(at)) for entry, id, slot, origin, fence, at in words}
        return sorted(found, key=lambda one: one.at)

    def run(self, seconds: float) -> BeatRow:
        wait_until(lambda: len(self.sent()) >= 3, within=180, what=f"{self._kind}: the first messages")
        began = time.time()
        self._kill_after(began + seconds / 6)
        self._freeze_after(began + seconds / 3)
        self._restart_after(began + seconds * 7 / 12)
        self._pass(began + seconds)
        end = time.time()
        if self._kind == OWN:
            self._judge_by_slot(began, end)
        else:
            self._judge_by_time(began, end)
        return self._row

    def _pass(self, until: float) -> None:
        time.sleep(max(0.0, until - time.time()))

    def _sender(self) -> int:
        """Return the process of the beat that sent last; any, where the last one has ended."""
        last = int(self.sent()[-1].origin.removeprefix("gen").partition("@")[0])
        living = [beat.pid for beat in self._beats if beat.poll() is None]
        return last if last in living else living[0]

    def _kill_after(self, when: float) -> None:
        self._pass(when)
        pid = self._sender()
        self._killed.add(pid)
        self._faults.append((time.time(), time.time()))
        processes.send(SIGKILL, [pid])

    def _freeze_after(self, when: float) -> None:
        self._pass(when)
        pid, since = self._sender(), time.time()
        processes.send(SIGSTOP, [pid])
        self._pass(since + FROZEN)
        processes.send(SIGCONT, [pid])
        self._faults.append((since, time.time()))

    def _restart_after(self, when: float) -> None:
        self._pass(when)
        since = time.time()
        self._broker.restart()
        self._faults.append((since, time.time()))

    def _judge_by_slot(self, began: float, end: float) -> None:
        """Count by the slot that is in each message."""
        due = {
            (entry, datetime.fromtimestamp(number * period, UTC))
            for entry, period in PERIODS.items()
            for number in range(int(began // period) + 1, int(end // period) + 1)
        }

        def by_slot() -> dict[tuple[str, datetime], list[Sent]]:
            found = defaultdict(list)
            for one in self.sent():
                found[one.entry, datetime.fromisoformat(one.slot)].append(one)
            return found

        try:
            wait_until(lambda: due <= by_slot().keys(), within=60, what="every slot was sent")
        except TimeoutError:
            pass  # counted below
        found = by_slot()
        self._row.slots = len(due)
        self._row.missing = len(due - found.keys())
        messages = [found[slot] for slot in due if slot in found]
        self._row.sent = sum(map(len, messages))
        self._row.copies = sum(len(one) - 1 for one in messages)
        self._row.astray = sum(not self._explained(one) for one in messages if len(one) > 1)
        self._note_silence([one for several in messages for one in several], began, end)

    def _explained(self, copies: list[Sent]) -> bool:
        """Return whether copies of one slot have one id, and the first was sent around a fault."""
        first = copies[0].at
        near = any(since - AROUND <= first <= until + AROUND for since, until in self._faults)
        return near and len({one.id for one in copies}) == 1

    def _judge_by_time(self, began: float, end: float) -> None:
        """Count by the time of sending: these messages name no slot. A silence as long as two periods is a slot."""
        time.sleep(5.0)  # what was sent in the end arrives
        found = [one for one in self.sent() if began <= one.at <= end]
        for entry, period in PERIODS.items():
            times = [began, *(one.at for one in found if one.entry == entry), end]
            slots = int(end // period) - int(began // period)
            missing = sum(max(0, round((b - a) / period) - 1) for a, b in pairwise(times))
            self._row.slots += slots
            self._row.missing += missing
            self._row.sent += len(times) - 2
            self._row.copies += max(0, len(times) - 2 - (slots - missing))
        self._note_silence(found, began, end)

    def _note_silence(self, found: list[Sent], began: float, end: float) -> None:
        times = sorted(one.at for one in found if one.entry == "secondly")
        around = [began, *times, max(end, *times, began)]
        self._row.silence, since = max((b - a, a) for a, b in pairwise(around))
        self._row.silent_from = since - began
        self._row.faults = tuple((since - began, until - began) for since, until in self._faults)

    def close(self) -> None:
        self._closing.set()
        self._platform.join()
        for process in self._started:
            if process.poll() is None:
                processes.send(SIGKILL, processes.tree(process.pid))
                process.wait()
