"""`/audit`: who asked for what, and what nodes did by themselves, newest first. No route changes an entry."""

from __future__ import annotations

from solocron.service.audit_list import list_audit, shown_act
from solocron.service.call import ApiCall
from solocron.service.paging import Listing, make_cursor, read_cursor
from solocron.views import AuditView

__all__ = ["audit", "shown_act"]


def audit(call: ApiCall) -> Listing[AuditView]:
    """Return entries of the audit with takeovers and burials, newest first."""
    given = call.given
    page = list_audit(call, limit=given["limit"], after=read_cursor(call.path, given))
    return Listing(
        items=page.entries,
        next=None if page.next is None else make_cursor(page.next, call.path, given),
        as_of=call.reads.now(),
        looked_back_to=page.looked_back_to,
    )
