"""What a pure function returns to a store: the new document, and the records that are appended with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solocron.model.documents.job import Job
    from solocron.model.documents.run import Record
    from solocron.model.documents.session import Session

__all__ = ["Absent", "Change", "Kind", "SmallDocument"]


class Kind(StrEnum):
    """The kinds of documents a store keeps."""

    JOB = "job"
    SESSION = "session"
    LOCK = "lock"
    KEY = "key"
    STEP = "step"
    CALENDAR = "calendar"
    REQUEST = "request"
    PERMIT = "permit"
    ALARM = "alarm"
    NAMESPACE = "namespace"
    AUDIT = "audit"
    """Entries that are appended and completed, never changed; the newest first by name."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A selected name under which there is no document; a change may create one."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallDocument:
    """A small document of a plain kind (lock, key, step, calendar, request, permit): a body in JSON, and its holder."""

    kind: Kind
    name: str
    body: Mapping[str, Any]
    session: str | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The new document (None: delete it), the records to append to the log with it, and an answer for the caller.

    Returning the same document that came in, without records, writes nothing and still carries the answer.
    """

    doc: Job | Session | SmallDocument | None
    records: tuple[Record, ...] = ()
    answer: Any = None
