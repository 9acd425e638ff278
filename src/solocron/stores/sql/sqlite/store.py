"""The contract on one SQLite file.

No lock is held while Python computes: read, decide, then a short `BEGIN IMMEDIATE` in which every row is compared
with the version that was read. A process frozen in the middle of deciding stops no other.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cache
from typing import Any

from solocron.clock import SECOND, Clock, SystemClock
from solocron.errors import ConfigurationError, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.stores.contract import Capabilities, Check, Due, Gate, Named, Tier, Which
from solocron.stores.documents import gate_in, is_open
from solocron.stores.drafts import Draft, Selection
from solocron.stores.mailbox import Mailbox
from solocron.stores.sql import migrations
from solocron.stores.sql.rows import Batch
from solocron.stores.sql.sqlite.clock import Anchor, BootClock, boot_key
from solocron.stores.sql.sqlite.file import place_of
from solocron.stores.sql.sqlite.link import SQLiteLink
from solocron.stores.sql.statements import Statement, load
from solocron.stores.sql.store import SqlStore
from solocron.stores.sql.types import Committed, arrange
from solocron.stores.stock import bequeath
from solocron.stores.url import StoreUrl

__all__ = ["SQLiteStore"]

OLDEST = (3, 31, 0)
RETURNING = (3, 35, 0)
"""From here on an UPDATE can tell something; before, a renewal is told nothing of the namespace, and its node asks."""
_GRACE = 5.0
"""Seconds that a fork waits for calls under way; each is far shorter."""
_POLL = 0.2
"""Seconds between two looks at SQLite's own change counter, which costs no statement."""


class SQLiteStore(SqlStore[SQLiteLink]):
    """A namespace in a SQLite file."""

    options = frozenset({"synchronous"})

    def __init__(
        self,
        url: StoreUrl,
        *,
        namespace: str = "default",
        lease: timedelta = timedelta(seconds=15),
        clock: Clock | None = None,
    ) -> None:
        super().__init__(url, namespace=namespace, lease=lease)
        self.place = place_of(url)
        self.synchronous = url.options.get("synchronous", "full").lower()
        if self.synchronous not in ("full", "extra", "normal"):
            raise ConfigurationError("sqlite: synchronous is full, extra or normal; nothing was opened.")
        self.boot_clock = BootClock(clock or SystemClock(), self._load_anchor, self._swap_anchor)
        self._boot = boot_key()
        self._sql = statements()
        self._watcher: SQLiteLink | None = None
        self._watching = threading.Lock()
        self._held_back = False
        self._data_version = -1

    @property
    def capabilities(self) -> Capabilities:
        if self.synchronous == "normal":
            return Capabilities(
                tier=Tier.B, why="one host; synchronous=normal may lose the last commits with the power", notifies=True
            )
        return Capabilities(tier=Tier.A, why="one host, one writer at a time, every commit synced", notifies=True)

    # --- opening

    def _alike(self) -> None:
        """Nothing: a connection to a file costs no server, and must be closed before a fork by its own store."""

    def _connect(self, *, read_only: bool = False) -> SQLiteLink:
        patience = max(1.0, self._lease / SECOND / 5)
        return SQLiteLink(
            self.place,
            self._sql,
            self.count,
            patience=patience,
            synchronous=self.synchronous,
            read_only=read_only,
        )

    def _look(self) -> None:
        _refuse_old()
        self.place.look()
        super()._look()

    def _inspect(self, link: SQLiteLink) -> None:
        """The version and the place of the file are looked at before it is opened."""

    def _prepare(self) -> None:
        _refuse_old()
        self.place.create()
        with self.pool.link() as link:
            _switch_to_wal(link, self.place.path)
            self._migrate(link)
            self.is_news(self._notifications(link))
        self.boot_clock.refresh()

    def exists(self) -> bool:
        return self.place.path.exists()

    def schema(self) -> int | None:
        with self.pool.link() as link:
            return self._schema(link)

    def _schema(self, link: SQLiteLink) -> int | None:
        if not link.all("tables", {})[0][0]:
            return None
        return migrations.check_compatible(dict(link.all("schema_version", {})), str(self.place.path))

    def _migrate(self, link: SQLiteLink) -> None:
        if migrations.SchemaStatus(self._schema(link)).current:
            return
        link.begin()
        applied = self._schema(link)  # another process may have done it while this one waited
        if not migrations.SchemaStatus(applied).current:
            for statement in migrations.steps("sqlite", migrations.words("sqlite"), applied):
                link.script(statement)
        link.commit()

    def before_fork(self) -> None:
        """SQLite keeps its locks in memory too: a copy of a held one is never let go, and a copy of an open file
        makes the child believe that the lock on it is its own. So nothing may be open when a process is forked."""
        self._held_back = self._watching.acquire(timeout=_GRACE)
        if self._held_back and self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        self.pool.pause(_GRACE)
        self._reading.pause(_GRACE)

    def after_fork(self) -> None:
        self.pool.resume()
        self._reading.resume()
        if self._held_back:
            self._watching.release()

    def forked(self) -> None:
        super().forked()
        bequeath(self._watcher)
        self._watcher = None
        self._watching = threading.Lock()

    def close(self) -> None:
        with self._watching:
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None
        super().close()

    # --- time

    def now(self, link: SQLiteLink) -> int:
        return self.boot_clock.now() + self._shift

    def clock(self) -> int:
        self._open_for_reading()
        return self.boot_clock.now() + self._shift

    def _load_anchor(self) -> Anchor | None:
        with self.links.link() as link:
            rows = link.all("read_meta", {"name": self._boot})
        return Anchor.from_text(rows[0][0]) if rows else None

    def _swap_anchor(self, old: Anchor | None, new: Anchor) -> None:
        if self._looking:
            return
        with self.pool.link() as link:
            if old is None:
                link.run("add_meta", {"name": self._boot, "value": new.to_text()})
            else:
                link.run("swap_meta", {"name": self._boot, "value": new.to_text(), "old": old.to_text()})

    # --- documents

    def among(self, values: Sequence[str]) -> str:
        return json.dumps(list(values))

    def select(self, link: SQLiteLink, which: Which, session: str | None, *, change: bool) -> Selection:
        now = self.now(link)
        if isinstance(which, Due):
            if change:
                link.deciding.__enter__()  # all want the same documents: one client at a time decides about them
            return self._select_due(link, which, session, now)
        name, params = self.selecting(which)
        rows = link.all(name, params)
        alive = session is None or bool(link.all("session_is_live", params | {"session": session}))
        return Selection(arrange(which, rows), self.now(link), alive=alive)

    def _select_due(self, link: SQLiteLink, which: Due, session: str | None, now: int) -> Selection:
        params: dict[str, Any] = {
            "namespace": self._namespace,
            "now": now,
            "session": session,
            "handlers": self.among(sorted(which.handlers)),
            "exclude": self.among(sorted(which.exclude)),
            "limit": which.limit,
        }
        found: list[tuple[Any, ...]] = []
        asides: list[int | None] = []
        alive = True
        for pool in sorted(which.pools):
            rows = link.all("due_jobs", params | {"pool": pool})
            found += rows
            if rows:
                asides.append(rows[0][5])
                alive = bool(rows[0][6])
        if not found:
            asides, alive = self._nothing_due(link, params | {"pools": self.among(sorted(which.pools))})
        found.sort(key=lambda row: (row[4], row[0]))
        due = [row for row in found[: which.limit] if row[4] <= now]
        following = [row[4] for row in found[len(due) : len(due) + 1]]
        following += [aside for aside in asides if aside is not None]
        return Selection(
            arrange(which, due),
            self.now(link),
            alive=alive,
            next_due=min(following, default=None),
        )

    def _nothing_due(self, link: SQLiteLink, params: Mapping[str, Any]) -> tuple[list[int | None], bool]:
        aside, alive = link.all("nothing_due", params)[0]
        return [aside], bool(alive)

    def recall(self, which: Named) -> Selection | None:
        self.cache.observe(self.boot_clock.now())  # here the clock need not be asked for over a network
        return super().recall(which)

    def who_answers(self, link: SQLiteLink) -> str:
        return link.identity

    def commit(
        self, link: SQLiteLink, drafts: Sequence[Draft], session: str | None, selection: Selection, gate: Gate | None
    ) -> Committed:
        batch = Batch.of(self._namespace, drafts[0].kind, drafts)
        if batch.alone and not batch.notifies and session is None:
            outcome = self._swap_alone(link, batch, drafts[0])
        else:
            outcome = self._swap_all(link, batch, drafts, session, gate)
        link.leave()
        outcome.told = selection.now  # here the clock is read, whether rows are recalled or not
        return outcome

    def abandon(self, link: SQLiteLink) -> None:
        link.leave()

    def _swap_alone(self, link: SQLiteLink, batch: Batch, one: Draft) -> Committed:
        """One row of one table: the version in its WHERE clause is enough, no transaction around it."""
        if one.kind is Kind.SESSION and batch.redefined and sqlite3.sqlite_version_info >= RETURNING:
            found = link.returning("session_renewed", batch.redefined[0])
            if not found:
                return Committed(lost={one.name})
            return Committed(gate=(gate_in(found[0][0]), link.identity) if found[0][0] else None)
        for name, rows in batch.writes():
            if rows and link.one(name, rows[0]) == 0:
                return Committed(lost={one.name})
        return Committed()

    def _swap_all(
        self, link: SQLiteLink, batch: Batch, drafts: Sequence[Draft], session: str | None, gate: Gate | None
    ) -> Committed:
        lost: set[str] = set()
        link.begin()
        # A batch of sessions may end the very one that is tested: it lives until the commit.
        first = batch.kind is Kind.SESSION
        refused = self._refused(link, session, gate) if first else None
        if refused is not None:
            return refused
        appended = self._write(link, batch, drafts)
        if appended is None:
            # Others were faster with some of them. Now that we hold the lock, see which, and write the rest.
            link.rollback()
            if first:
                return Committed(lost={one.name for one in drafts})
            link.begin()
            lost = self._overtaken(link, drafts)
            rest = [one for one in drafts if one.name not in lost]
            batch = Batch.of(self._namespace, batch.kind, rest)
            appended = self._write(link, batch, rest) if rest else 0
            if appended is None:
                link.rollback()
                return Committed(lost={one.name for one in drafts})
        refused = None if first else self._refused(link, session, gate)
        if refused is not None:
            return refused
        if batch.notifies:
            self.notifying(1)
            link.many("notify", [(self._namespace,)])
        link.commit()
        return Committed(lost=lost, short=appended < len(batch.appended))

    def _refused(self, link: SQLiteLink, session: str | None, gate: Gate | None) -> Committed | None:
        """Roll back and say why, if the session is not live or the gate not open."""
        if session is None:
            return None
        own = link.all("session_is_live", {"namespace": self._namespace, "session": session})
        shut = gate is not None and own and (link.is_stale() or not is_open(gate, own[0][0], own[0][1], link.identity))
        if own and not shut:
            return None
        link.rollback()
        return Committed(shut=True) if own else Committed(alive=False)

    def _write(self, link: SQLiteLink, batch: Batch, drafts: Sequence[Draft]) -> int | None:
        """Write rows and records; return how many records were appended, None if a row is not the one that was read."""
        stay = {one.name for one in drafts if _stays(one)} if batch.moved else set()
        for name, rows in batch.writes():
            if rows and name == "job_moved" and stay:
                staying = [row[2:] for row in rows if row[6] in stay]
                if link.many("job_stayed", staying) != len(staying):
                    return None
                rows = [row for row in rows if row[6] not in stay] if len(staying) < len(rows) else []
            if rows and link.many(name, rows) != len(rows):
                return None
        done = {name: link.many(name, rows) for name, rows in batch.follow_ups() if rows}
        return done.get("record_appended", 0)

    def _overtaken(self, link: SQLiteLink, drafts: Sequence[Draft]) -> set[str]:
        kind = drafts[0].kind
        names = self.among([one.name for one in drafts])
        statement = "job_versions" if kind is Kind.JOB else "document_versions"
        found = dict(link.all(statement, {"namespace": self._namespace, "kind": kind, "names": names}))
        return {one.name for one in drafts if found.get(one.name) != one.mark}

    # --- the user's own transactions

    def mailbox(self) -> AbstractContextManager[Mailbox]:
        from solocron.stores.sql.sqlite.mailbox import open_mailbox

        return open_mailbox(self)

    # --- waking up

    def signal(self) -> None:
        # Not counted as our own: a signal is for all clients, and for the other threads of this one.
        self.open()
        self.call(lambda link: link.one("notify", (self._namespace,)))

    def wait(self, timeout: float) -> bool:
        """Look at SQLite's change counter, and at ours only when it has moved."""
        self.open()
        end = time.monotonic() + timeout
        while True:
            if self._has_changed():
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL, left))

    def _has_changed(self) -> bool:
        with self._watching:
            if self._watcher is not None and self._watcher.is_stale():
                # Let go of it first: a file that is away cannot be opened, and when it is back with the same inode, a
                # closed watcher would no longer count as stale.
                self._watcher.close()
                self._watcher = None
            if self._watcher is None:
                self._watcher, self._data_version = self._connect(), -1
            version = self._watcher.pragma("data_version")
            if version == self._data_version:
                return False
            self._data_version = version
            return self.is_news(self._notifications(self._watcher))

    def _notifications(self, link: SQLiteLink) -> int:
        rows = link.all("signals", {"namespace": self._namespace})
        return int(rows[0][0]) if rows else 0

    def checks(self) -> Sequence[Check]:
        from solocron.stores.sql.sqlite.checks import checks

        return checks(self)


def _refuse_old() -> None:
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreRefused(
            f"SQLite {sqlite3.sqlite_version} is too old; at least {'.'.join(map(str, OLDEST))} is needed. "
            "Nothing was written. Use a newer Python, or a server store such as postgresql://."
        )


def _stays(one: Draft) -> bool:
    """Return whether a job keeps its place among those that wait for their instants: it does when a run ends."""
    old, new = one.doc, one.change.doc if one.change is not None else None
    return isinstance(old, Job) and isinstance(new, Job) and old.due_at == new.due_at and old.cursor == new.cursor


def _among(name: str) -> str:
    return f"IN (SELECT value FROM json_each(:{name}))"  # noqa: S608 - a parameter's name from our own files


@cache
def statements() -> dict[str, Statement]:
    """Return SQLite's statements."""
    words = migrations.words("sqlite") | {"share": "", "text": "TEXT", "identity": "NULL"}
    # SQLite has no statistics unless a person asks for them, and without them it prefers the index of all records.
    return load(("common", "sqlite"), words, {"in": _among, "by": lambda name: f"INDEXED BY {words[name]}"})


def _switch_to_wal(link: SQLiteLink, path: os.PathLike[str]) -> None:
    """Readers beside a writer. The switch needs the file for itself for a moment; others may be at it too."""
    end = time.monotonic() + 10
    while True:
        try:
            mode = link.pragma("journal_mode = WAL")
        except StoreUnavailable:  # the busy handler does not wait for this one
            mode = "busy"
        if mode == "wal":
            return
        if time.monotonic() > end:
            raise StoreRefused(
                f"{path} cannot be switched to WAL (journal mode {mode}); nothing was written. "
                "Close the programs that use it, or put it on a local disk."
            )
        time.sleep(0.01)
