"""The floor on a key store: its own calls, two fetches and one commit to claim, one commit to finish.

What it leaves out is everything above the commits: no rounds after a lost race, no turns, no bodies, no beats. As nodes
take turns, each process takes its own share of what is due first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from zlib import crc32

from bench.floor.documents import NODE, Claimed, claimed, finished
from solocron.model.change import Kind
from solocron.model.documents.run import Origin, Record, Status
from solocron.stores.swap.key_store import ABSENT, EXISTS, Condition, Span, Stale
from solocron.stores.swap.layout import (
    Header,
    changed,
    document_key,
    due_of,
    instant,
    live_key,
    log_keys,
    packed,
    pool_prefix,
    run_key,
    unpacked,
)
from solocron.stores.swap.store import SwapStore

__all__ = ["Floor"]

_KEYS = 5
"""Keys that the end of a run writes: document, hold, and three of the log. A claim writes four."""


class Floor:
    """One process's client."""

    def __init__(self, store: SwapStore, session: str, *, processes: int = 1) -> None:
        self._keys = store._keys
        self._session = session
        self._processes = processes
        self._commits = 0
        self._number = int(session, 16) - 1

    def pass_once(self, batch: int) -> int:
        """Claim up to `batch` and finish them; how many there were."""
        keys, prefix = self._keys, pool_prefix("default")
        batch = min(batch, (keys.limits.keys - 1) // _KEYS)
        now = keys.now()
        (page,) = keys.fetch((), (Span(prefix, f"{prefix}{instant(now + 1)}", batch * self._processes),)).pages
        if not page:
            keys.ask_time()
            return 0
        names = [due_of(item.key)[2] for item in page]
        mine = [name for name in names if crc32(name.encode()) % self._processes == self._number] or names
        items = keys.fetch([document_key(Kind.JOB, name) for name in mine[:batch]]).items.values()
        found = {item.key.split("/", 2)[2]: (item.mark, *unpacked(item.value)) for item in items}
        # Another process may have ended it since the page was read: it is due tomorrow then.
        ripe = {name: one for name, one in found.items() if one[1] and not one[1].held and (one[1].due or now) < now}
        held = claimed(
            [(name, mark, fixed, state) for name, (mark, _, fixed, state) in ripe.items()], self._session, now
        )
        if not held:
            return 1  # not nothing: another process is at them
        headers = {name: one[1] for name, one in ripe.items()}
        texts = {name: one[2] for name, one in ripe.items()}
        marks = self._claim(held, headers, texts, now)
        if marks is not None:
            self._finish(held, headers, texts, marks)
        return len(held) if marks is not None else 1

    def _claim(
        self, held: list[Claimed], headers: dict[str, Any], texts: dict[str, str], now: int
    ) -> dict[str, Any] | None:
        """Return the new marks; None if another process was first."""
        checks: dict[str, Condition] = {live_key(self._session): EXISTS}
        writes: dict[str, str | None] = {}
        token = self._token()
        for one in held:
            checks[document_key(Kind.JOB, one.name)] = one.version
            new = replace(headers[one.name], due=one.due, held=(self._session,), time=now, token=token)
            writes |= self._document(one.name, headers[one.name], new, texts[one.name], one.state)
            headers[one.name] = new
        reply = self._keys.commit(checks, writes)
        return None if isinstance(reply, Stale) else dict(reply.marks)

    def _finish(
        self, held: list[Claimed], headers: dict[str, Any], texts: dict[str, str], marks: dict[str, Any]
    ) -> None:
        now, token = self._keys.now(), self._token()
        checks: dict[str, Condition] = {}
        writes: dict[str, str | None] = {}
        for one in held:
            key = document_key(Kind.JOB, one.name)
            checks |= {key: marks[key], run_key(one.run, 1): ABSENT}
            new = replace(headers[one.name], held=(), time=now, token=token)
            writes |= self._document(one.name, headers[one.name], new, texts[one.name], finished(one.state, now))
            writes |= log_keys(self._record(one, now))
        reply = self._keys.commit(checks, writes)
        assert not isinstance(reply, Stale), reply

    def _document(self, name: str, old: Header, new: Header, fixed: str, state: str) -> dict[str, str | None]:
        index = changed(old.index(Kind.JOB, name), new.index(Kind.JOB, name))
        return {document_key(Kind.JOB, name): packed(new, fixed, state), **index}

    def _record(self, one: Claimed, now: int) -> Record:
        return Record(
            run=one.run, job=one.name, attempt=1, slot=one.slot, origin=Origin.SCHEDULE, status=Status.SUCCEEDED,
            key=one.key, recorded_at=now, node=NODE, session=self._session, fence=one.fence, claimed_at=now,
            started_at=now, finished_at=now, first=one.slot,
        )  # fmt: skip

    def _token(self) -> str:
        self._commits += 1
        return f"{self._session}.{self._commits}"
