"""Entries of the audit as callers see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from solocron.clock import from_us
from solocron.model.documents.audit import ASKED, Entry

__all__ = ["AuditPage", "AuditView"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """Who asked for what, when, by which way, and what came of it."""

    at: datetime
    who: str | None
    role: str | None
    address: str | None
    via: str
    act: str
    subject: str
    note: str | None
    request: str | None
    before: Any
    after: Any
    result: str
    """`done`, the sentence in which it was refused, or `outcome unknown`: the process that asked ended too early."""

    @classmethod
    def of(cls, entry: Entry) -> AuditView:
        """Make the view of an entry."""
        act = entry.act
        return cls(
            at=from_us(entry.at),
            who=act.who,
            role=act.role,
            address=act.address,
            via=act.via,
            act=act.act,
            subject=act.subject,
            note=act.note,
            request=act.request,
            before=act.before,
            after=entry.after,
            result="outcome unknown" if entry.result == ASKED else entry.result,
        )


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries of the audit, newest first."""

    entries: tuple[AuditView, ...]
    next: str | None = None
    """Where the next page begins; None if there is nothing more."""
    looked_back_to: datetime | None = None
    """How far the search came, if it was ended before the page was full."""
