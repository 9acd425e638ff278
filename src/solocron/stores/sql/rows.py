"""The rows of a batch: what has to be written, table by table, each list one bulk statement."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin, Record, Status
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import Doc, wakes
from solocron.stores.documents import holders_of, marks_of
from solocron.stores.drafts import Draft

__all__ = ["COLUMNS", "NUMBERS", "Batch", "as_json", "birth", "record_of", "record_row"]

_compact = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_NULL, _WHOLE, _TEXT = {type(None)}, {int}, {str, Kind, Origin, Status, Life}

_STATE = ("due_at", "cursor_at", "marks", "active", "state")
_JOB = ("namespace", "name", "version")
_DOCUMENT = ("namespace", "kind", "name", "version")
_BODY = ("state", "expires_at", "ended_at", "fixed", "body")
_HOLD = ("namespace", "session", "kind", "name")
_RECORD = (
    *("run", "job", "attempt", "slot", "origin", "status", "run_key", "recorded_at", "reason", "node", "session"),
    *("fence", "claimed_at", "started_at", "finished_at", "error", "result", "progress", "first_slot", "slots"),
    *("asked_by", "note"),
)

COLUMNS: dict[str, tuple[str, ...]] = {
    "job_moved": (*_STATE, *_JOB),
    "job_added": ("pool", "handler", "definition", *_STATE, *_JOB),
    "job_redefined": ("pool", "handler", "definition", *_STATE, *_JOB),
    "job_touched": _JOB,
    "job_removed": _JOB,
    "document_added": (*_BODY, *_DOCUMENT),
    "document_changed": (*_BODY, *_DOCUMENT),
    "document_touched": _DOCUMENT,
    "document_removed": _DOCUMENT,
    "record_appended": (*_RECORD, "namespace"),
    "hold_added": _HOLD,
    "hold_removed": _HOLD,
}
"""The columns of each bulk statement, in the order of a batch's rows."""

NUMBERS = frozenset(
    (
        *("due_at", "cursor_at", "marks", "active", "version", "expires_at", "ended_at", "attempt", "slot", "fence"),
        *("recorded_at", "claimed_at", "started_at", "finished_at", "first_slot", "slots"),
    )
)
"""The columns that hold whole numbers; all others hold texts."""


@dataclass(slots=True)
class Batch:
    """The rows of some drafts, sorted by what has to be done with them; each list is one bulk statement.

    The last columns of a changed row say which row, at which version; a dialect binds them as they stand.
    """

    kind: Kind
    added: list[tuple[Any, ...]] = field(default_factory=list)
    redefined: list[tuple[Any, ...]] = field(default_factory=list)
    moved: list[tuple[Any, ...]] = field(default_factory=list)
    touched: list[tuple[Any, ...]] = field(default_factory=list)
    removed: list[tuple[Any, ...]] = field(default_factory=list)
    held: list[tuple[Any, ...]] = field(default_factory=list)
    let_go: list[tuple[Any, ...]] = field(default_factory=list)
    appended: list[tuple[Any, ...]] = field(default_factory=list)
    notifies: bool = False
    """Whether other nodes should look again because of it."""

    @classmethod
    def of(cls, namespace: str, kind: Kind, drafts: Iterable[Draft]) -> Batch:
        batch = cls(kind)
        add = batch._add_job if kind is Kind.JOB else batch._add_document
        for one in drafts:
            change, old = one.change, one.doc
            assert change is not None
            assert old is not None
            new = change.doc
            batch.notifies = batch.notifies or wakes(old, new)
            add(namespace, one, new)
            if new is not old:
                batch._add_holds(namespace, one, holders_of(old), holders_of(new))
            for record in change.records:
                batch.appended.append(record_row(namespace, record))
        return batch

    @property
    def alone(self) -> bool:
        """Return whether it is one row of one table: the version in its WHERE clause then makes it atomic."""
        rows = len(self.added) + len(self.redefined) + len(self.moved) + len(self.touched) + len(self.removed)
        return rows == 1 and not (self.held or self.let_go or self.appended)

    def writes(self) -> tuple[tuple[str, list[tuple[Any, ...]]], ...]:
        """Return the statements that compare and swap, each with its rows."""
        if self.kind is Kind.JOB:
            return (
                ("job_moved", self.moved),
                ("job_added", self.added),
                ("job_redefined", self.redefined),
                ("job_touched", self.touched),
                ("job_removed", self.removed),
            )
        return (
            ("document_changed", self.redefined),
            ("document_added", self.added),
            ("document_touched", self.touched),
            ("document_removed", self.removed),
        )

    def follow_ups(self) -> tuple[tuple[str, list[tuple[Any, ...]]], ...]:
        """Return the statements that belong to the rows swapped."""
        return (
            ("record_appended", self.appended),
            ("hold_removed", self.let_go),
            ("hold_added", self.held),
        )

    def _add_job(self, namespace: str, one: Draft, new: Doc | None) -> None:
        where = (namespace, one.name, one.mark)
        if new is one.doc:
            self.touched.append(where)
        elif new is None:
            if one.mark is not None:
                self.removed.append(where)
        else:
            assert isinstance(new, Job)
            state = (new.due_at, new.cursor, marks_of(new), len(new.active), one.state)
            if one.mark is None:
                self.added.append((new.definition.pool, new.definition.handler, one.fixed, *state, *where[:2], birth()))
            elif one.fixed is not None:
                self.redefined.append((new.definition.pool, new.definition.handler, one.fixed, *state, *where))
            else:
                self.moved.append((*state, *where))

    def _add_document(self, namespace: str, one: Draft, new: Doc | None) -> None:
        where = (namespace, one.kind, one.name, one.mark)
        if new is one.doc:
            self.touched.append(where)
            return
        if new is None:
            if one.mark is not None:
                self.removed.append(where)
            return
        ended_at = new.ended_at if isinstance(new, Session) else None
        expires_at = None if isinstance(new, Job) else new.expires_at
        row = (_life(new), expires_at, ended_at, one.fixed_now, one.state, *where)
        if one.mark is None:
            self.added.append((*row[:-1], birth()))
        else:
            self.redefined.append(row)

    def _add_holds(self, namespace: str, one: Draft, before: frozenset[str], after: frozenset[str]) -> None:
        for session in after - before:
            self.held.append((namespace, session, one.kind, one.name))
        for session in before - after:
            self.let_go.append((namespace, session, one.kind, one.name))


def as_json(statement: str, rows: Sequence[tuple[Any, ...]]) -> str:
    """Return the rows of a bulk statement as one JSON string; a column that is NULL in all of them is left out.

    Column by column, and put together by one template: half the price of an encoder that meets every value by itself.
    """
    names, columns = [], []
    for name, values in zip(COLUMNS[statement], zip(*rows, strict=True), strict=True):
        types = set(map(type, values))
        if types == _NULL:
            continue
        names.append(name)
        if types == _WHOLE:
            columns.append(values)
        else:
            columns.append(tuple(map(_quoted if types <= _TEXT else _compact, values)))
    template = "{" + ",".join([f'"{name}":%s' for name in names]) + "}"
    return "[" + ",".join(map(template.__mod__, zip(*columns, strict=True))) + "]"


def record_row(namespace: str, r: Record) -> tuple[Any, ...]:
    """Return the row of a record, in the order of `record_appended`."""
    return (
        r.run, r.job, r.attempt, r.slot, r.origin, r.status, r.key, r.recorded_at, r.reason, r.node, r.session, r.fence,
        r.claimed_at, r.started_at, r.finished_at, r.error, r.result, r.progress, r.first, r.count,
        r.asked_by, r.note, namespace,
    )  # fmt: skip


def birth() -> int:
    """Return a first version that no document of that name has had before: one made anew is another document."""
    return secrets.randbits(52)  # not `random`: two forks of a process would draw the same


def _life(doc: Doc | None) -> Life | None:
    return doc.state if isinstance(doc, Session) else None


def record_of(row: tuple[Any, ...]) -> Record:
    """Return a record of the log from its columns."""
    (run, job, attempt, slot, origin, status, key, recorded_at, reason, node, session, fence,
     claimed_at, started_at, finished_at, error, result, progress, first, count, asked_by, note) = row  # fmt: skip
    return Record(
        run=run, job=job, attempt=attempt, slot=slot, origin=Origin(origin), status=Status(status), key=key,
        recorded_at=recorded_at, reason=reason, node=node, session=session, fence=fence, claimed_at=claimed_at,
        started_at=started_at, finished_at=finished_at, error=error, result=result, progress=progress,
        first=first, count=count, asked_by=asked_by, note=note,
    )  # fmt: skip
