"""Starts replicas as real processes, hurts them, and leaves none behind, whatever happens to the program itself."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from subprocess import DEVNULL, STDOUT, Popen
from types import TracebackType
from typing import Self

from solocron.duration import format_duration, parse_duration
from solocron.errors import InvalidError, StoreError
from solocron.model.documents.session import Life
from solocron.scheduler import Scheduler
from solocron.stores.url import parse
from solocron.testing.fleet.leash import PARENT
from solocron.testing.fleet.ledger import FOLDER, Ledger
from solocron.testing.fleet.replica import Incident, Replica
from solocron.testing.fleet.waiting import wait_until

__all__ = ["Fleet"]

Span = timedelta | int | float | str

READY_WITHIN = 60.0
_FREEZES = 40


class Fleet:
    """Replicas of one program on one store. `scheduler` is a client of the same store with the same jobs declared.

    `store` is a URL; a replica may get another one of the same place (a proxy). `folder` takes the ledger, the logs and
    the events.
    """

    def __init__(
        self,
        targets: Sequence[str],
        *,
        store: str,
        folder: Path,
        namespace: str = "default",
        lease: Span = "3s",
        beat: Span | None = None,
        max_running: int = 32,
        grace: Span = "10s",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.targets = tuple(targets)
        self.folder = folder
        self.ledger = Ledger(folder / "ledger")
        self.replicas: list[Replica] = []
        """Every replica that was ever started, in order."""
        self.incidents: list[Incident] = []
        self._store = store
        self._env = dict(env or {})
        self._options = [f"--namespace={namespace}", f"--lease={_text(lease)}", f"--max-running={max_running}"]
        self._options += [f"--grace={_text(grace)}"] + ([f"--beat={_text(beat)}"] if beat is not None else [])
        if parse(store).scheme == "memory":
            raise InvalidError(
                "a memory:// store cannot be shared by processes; nothing was started. Use sqlite:///file."
            )
        # Not opened here: five replicas that start at once on an empty database are part of what is tested.
        self.scheduler = Scheduler(store, namespace=namespace, lease=lease, beat=beat, enabled=True)
        self.scheduler.discover(*targets)
        # The kernel ends a replica with the *thread* that started it, so one thread starts them all and stays.
        self._spawner = ThreadPoolExecutor(1, "fleet-spawner")
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # --- starting and ending

    def start(self, n: int = 1) -> list[Replica]:
        """Start replicas and return when each holds a session."""
        fresh = [self.spawn() for _ in range(n)]
        self.wait_ready(fresh)
        return fresh

    def spawn(
        self,
        node: str | None = None,
        *,
        store: str | None = None,
        env: Mapping[str, str] | None = None,
        failpoint: str | None = None,
        targets: Sequence[str] | None = None,
        argv: Sequence[str] | None = None,
    ) -> Replica:
        """Start one replica and return at once. `argv`: another program than the fleet's own."""
        node = node or f"replica-{len(self.replicas) + 1}"
        if any(replica.node == node for replica in self.replicas):
            raise InvalidError(f"there is a replica {node!r} already; nothing was started.")
        if argv is None:
            argv = [sys.executable, "-m", "solocron.testing.fleet", *(targets or self.targets), f"--node={node}"]
            argv += [f"--events={self.folder / node}.events", *self._options]
        surroundings = {
            **{name: value for name, value in os.environ.items() if name != "SOLOCRON_FAILPOINT"},
            "PYTHONPATH": os.pathsep.join(dict.fromkeys(path for path in sys.path if path)),
            "SOLOCRON_STORE": store or self._store,
            "SOLOCRON_ENABLED": "1",
            "SOLOCRON_HEALTH_DIR": str((self.folder / "health").resolve()),  # a killed replica cannot remove its file
            FOLDER: str(self.ledger.folder),
            PARENT: str(os.getpid()),
            **({"SOLOCRON_FAILPOINT": failpoint} if failpoint else {}),
            **self._env,
            **(env or {}),
        }
        with (self.folder / f"{node}.log").open("ab") as log:
            process = self._spawner.submit(
                Popen, argv, stdin=DEVNULL, stdout=log, stderr=STDOUT, env=surroundings, start_new_session=True
            ).result()
        replica = Replica(node, process, self.folder, self.incidents.append)
        self.replicas.append(replica)
        return replica

    def wait_ready(self, replicas: Sequence[Replica], *, within: float = READY_WITHIN) -> None:
        """Wait until each of these has begun a session and written its definitions."""
        for replica in replicas:
            replica.wait_event("node started", within=within)

    def stop(self, within: float = READY_WITHIN) -> list[int]:
        """Send SIGTERM to all that live; return their exit codes when they have drained."""
        alive = self.alive()
        for replica in alive:
            if replica.frozen:
                replica.thaw()
            replica.term()
        return [replica.wait(within) for replica in alive]

    def close(self) -> None:
        """End whatever is left at once; twice is harmless."""
        atexit.unregister(self.close)
        for replica in self.replicas:
            if replica.alive:
                replica.kill()
        self._spawner.shutdown()
        self.scheduler.stop()

    # --- looking and hurting

    def alive(self) -> list[Replica]:
        """Return the live replicas, frozen ones included, in the order of their start."""
        return [replica for replica in self.replicas if replica.alive]

    def of(self, node: str) -> Replica:
        """Return the replica of that name."""
        return next(replica for replica in self.replicas if replica.node == node)

    def freeze(self, replica: Replica) -> None:
        """Stop a replica that is not just writing: one that keeps a file's write lock would stop all the others too."""
        before = len(self.incidents)
        for _ in range(_FREEZES):
            replica.stop()
            if self._writable():
                return
            replica.thaw()
            del self.incidents[before:]  # undone, so it did not happen
            wait_until(self._writable, within=READY_WITHIN, what="the store to take writes again")
        raise RuntimeError(f"{replica!r} held the write lock each of {_FREEZES} times that it was frozen")

    def _writable(self) -> bool:
        try:
            self.scheduler.open().store.signal()
        except StoreError:
            return False
        return True

    def wait_buried(self, replica: Replica, *, within: float) -> None:
        """Wait until no session of this replica is live any more."""
        wait_until(lambda: not self._lives(replica), within=within, what=f"the burial of {replica!r}")

    def _lives(self, replica: Replica) -> bool:
        return any(view.pid == replica.pid and view.state != Life.DEAD for view in self.scheduler.nodes())


def _text(span: Span) -> str:
    return format_duration(parse_duration(span))
