"""`/audit`: who asked for what, newest first. No route changes or removes an entry."""

from __future__ import annotations

from dataclasses import replace

from solocron.service.call import ApiCall
from solocron.service.paging import Listing, make_cursor, read_cursor
from solocron.service.shown import redacted, scrubbed
from solocron.views import AuditView

__all__ = ["audit", "shown_act"]


def audit(call: ApiCall) -> Listing[AuditView]:
    """Return entries of the audit, newest first."""
    given = call.given
    page = call.reads.audit(
        who=given["who"], subject=given["subject"], limit=given["limit"], after=read_cursor(call.path, given)
    )
    return Listing(
        items=tuple(map(shown_act, page.entries)),
        next=None if page.next is None else make_cursor(page.next, call.path, given),
        as_of=call.reads.now(),
        looked_back_to=page.looked_back_to,
    )


def shown_act(act: AuditView) -> AuditView:
    """Return an entry as it may be shown."""
    return replace(act, before=redacted(act.before), after=redacted(act.after), result=scrubbed(act.result))
