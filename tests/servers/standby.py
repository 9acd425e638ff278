"""A PostgreSQL primary and a streaming standby behind a wire that can be cut: promoted then, it lacks the last commits.

    with Pair() as pair:
        pair.attach()
        pair.cut()              # from here on nothing reaches the standby
        ...
        pair.fail_over()        # kill -9, promotion; `url` finds the new primary

The two ports stay: the next standby takes the port of the primary that died.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from solocron.testing.proxy import ChaosProxy
from tests.servers.base import ServerFailed, free_port
from tests.servers.postgres import Postgres

__all__ = ["Pair", "Standby"]

NAME = "standby"
"""What the standby calls itself, and what the primary waits for where it is to be synchronous."""
WITHIN = 30.0
SETTINGS = {"wal_retrieve_retry_interval": "100ms", "max_connections": "200"}


class Standby(Postgres):
    """A copy of a running primary that follows it through a wire, at a port that it is given."""

    def __init__(
        self, primary: Postgres, *, wire: ChaosProxy, port: int, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(settings=settings)
        self._primary = primary
        self._wire = wire
        self._port = port

    def start(self) -> Self:
        """Copy the primary and follow it; a second time, start on the data that is there."""
        if self.port:
            return super().start()
        self.folder = self._make_folder()
        try:
            self.prepare()
            self.port = self._port
            self._launch()
        except BaseException:
            self.stop()
            raise
        return self

    def prepare(self) -> None:
        data = self.folder / "data"
        self._primary.copy_to(data, owner=self, follow=True)
        with (data / "postgresql.auto.conf").open("a") as file:
            file.write(
                f"primary_conninfo = 'host={self._wire.host} port={self._wire.port} user=solocron "
                f"application_name={NAME}'\n"
                # The copy has the primary's own setting: promoted, it would wait for a standby that it does not have.
                "synchronous_standby_names = ''\n"
            )

    def promote(self) -> None:
        """Make it a primary; returns when it takes writes."""
        row = self.sql("SELECT pg_promote(true, 30)")[0]
        if row != (True,):
            raise ServerFailed(f"the standby was not promoted:\n{self.log()[-3000:]}")
        _until(lambda: self.sql("SELECT pg_is_in_recovery()") == [(False,)], "the promoted standby to take writes")


class Pair:
    """`synchronous`: a commit is acknowledged when the standby has applied it (`remote_apply`), else at once."""

    def __init__(self, *, synchronous: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self.synchronous = synchronous
        self._settings = {**SETTINGS, **(settings or {})}
        self.primary: Postgres = Postgres(settings=self._settings)
        self.standby: Standby | None = None
        self._ports: tuple[int, int] = (0, 0)
        self._wire: ChaosProxy | None = None

    def __enter__(self) -> Self:
        self.primary.start()
        self._ports = (self.primary.port, free_port())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._unwire()
        if self.standby is not None:
            self.standby.stop()
        self.primary.stop()

    @property
    def url(self) -> str:
        """Both servers; a client takes the one that takes writes."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"postgresql://solocron@{hosts}/postgres?target_session_attrs=read-write"

    def attach(self) -> None:
        """Give the primary a new standby; returns when it has everything that is committed by now."""
        assert self.standby is None, "there is a standby already"
        self._wire = ChaosProxy(ChaosProxy.host, self.primary.port)
        port = next(port for port in self._ports if port != self.primary.port)
        self.standby = Standby(self.primary, wire=self._wire, port=port, settings=self._settings).start()
        if self.synchronous:
            self.primary.sql("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
            self.primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'")
            self.primary.sql("SELECT pg_reload_conf()")
            _until(lambda: self._follows("sync_state = 'sync'"), "the standby to be synchronous")
        ((reached,),) = self.primary.sql("SELECT pg_current_wal_lsn()::text")
        _until(lambda: self._follows(f"replay_lsn >= '{reached}'"), "the standby to catch up")

    def cut(self) -> None:
        """From now on nothing that is committed reaches the standby; both sides see silence."""
        assert self._wire is not None, "attach() comes first"
        self._wire.blackhole()

    def fail_over(self) -> None:
        """kill -9 of the primary; the standby takes its place, with what it has. The old one never comes back."""
        assert self.standby is not None, "attach() comes first"
        self.primary.kill9()
        self.standby.promote()
        old, self.primary, self.standby = self.primary, self.standby, None
        self._unwire()
        old.stop()

    def _follows(self, how: str) -> bool:
        return self.primary.sql(f"SELECT {how} FROM pg_stat_replication WHERE state = 'streaming'") == [(True,)]

    def _unwire(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


def _until(look: Any, what: str) -> None:
    import psycopg

    end = time.monotonic() + WITHIN
    nothing = threading.Event()
    while True:
        with suppress(psycopg.Error):
            if look():
                return
        if time.monotonic() > end:
            raise ServerFailed(f"waited {WITHIN:g} s in vain for {what}")
        nothing.wait(0.02)
