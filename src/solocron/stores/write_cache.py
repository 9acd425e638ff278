"""What this client has just written, as documents: whoever reads the very same texts back need not parse them again.

A node ends most runs from the document that its claim left. `take` compares texts, never a version: what a restored
backup or another client wrote meanwhile is parsed as ever. A store that can compare more than a version while it writes
(who holds the document, and what time it is) need not even read it: `recall` and `rows`.
"""

from __future__ import annotations

from typing import Any

from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.session import Session
from solocron.stores.contract import Named, Which

__all__ = ["Recent"]

_MOST = 2_000
"""Documents kept. More than a node runs at once; one that is read is let go."""
_NOTHING = ("", "", None, "")


class Recent:
    """Jobs that are held, by name. Every step is one operation on a dictionary, so threads need no lock."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, str, Job, str | int]] = {}

    def put(
        self, fixed: str, state: str, doc: Job | Session | SmallDocument | Absent | None, mark: str | int = ""
    ) -> None:
        """Keep a document under the texts that were made of it, with what it is compared by."""
        if not isinstance(doc, Job) or not _comes_back_as_it_is(doc):
            return
        if len(self._kept) >= _MOST:
            self._kept.clear()
        self._kept[doc.name] = (fixed, state, doc, mark)

    def take(self, name: str, fixed: str, state: str) -> Job | None:
        """The document of these very texts, once."""
        found = self._kept.pop(name, None)
        return found[2] if found is not None and found[1] == state and found[0] == fixed else None

    def recall(self, name: str) -> tuple[str, str, Job, str | int] | None:
        """A document as it was written, once: its texts, itself, and what it is compared by. It may have changed."""
        return self._kept.pop(name, None)

    def rows(self, which: Which, session: str | None) -> dict[str, tuple[str, Any, str, str] | None] | None:
        """All the jobs that are named as rows at the version of our write; None unless each is here, with one hold.

        Where others hold a job too, they write it as well: better to read and lock it first.
        """
        if session is not None or not isinstance(which, Named) or which.kind is not Kind.JOB:
            return None
        found: dict[str, tuple[str, Any, str, str] | None] = {}
        for name in which.names:
            fixed, state, doc, version = self._kept.get(name, _NOTHING)
            if doc is None or version == "" or len(doc.active) > 1:
                return None
            found[name] = (name, version, fixed, state)
        return found

    def forget(self) -> None:
        self._kept.clear()


def _comes_back_as_it_is(job: Job) -> bool:
    """Whether parsing its texts would give an equal document, and nobody else has a part of it in hand to change."""
    active = job.active
    if not active or job.waiting_runs or job.waiting_ranges or job.requests or job.extra:
        return False
    return active[0].payload is None if len(active) == 1 else all(hold.payload is None for hold in active)
