"""Pages of the log over SQL: the narrowest index answers, and what no index answers is looked for in a bounded part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nlargest
from typing import Any

from solocron.model.documents.run import ENDED, Origin, Record, Status
from solocron.stores.contract import Page, Query, RecordKey
from solocron.stores.log import key_of, page_within
from solocron.stores.sql.rows import record_of
from solocron.stores.sql.types import SqlLink

__all__ = ["page_of"]

_EVER = 2**62


def page_of(link: SqlLink, query: Query, namespace: str, among: Callable[[Sequence[str]], Any]) -> Page:
    """Answer a query. By name, the records are few and filtered here; else the database looks at `scan` of them."""
    if query.limit <= 0:
        return Page(())
    if query.named:
        rows = link.all("history_of_runs", {"namespace": namespace, "runs": among(sorted(set(query.named)))})
        return page_within(query, map(record_of, rows))
    if query.group is not None:
        bounds = {"first": f"{query.group}#", "last": f"{query.group}$"}  # `$` follows `#`
        rows = link.all("history_of_group", {"namespace": namespace, **bounds})
        return page_within(query, map(record_of, rows))
    at, run, attempt = query.before or (_EVER, "", 0)
    params = {
        "namespace": namespace,
        "job": query.job,
        "since": -_EVER if query.since is None else query.since,
        "until": _EVER if query.until is None else query.until,
        "before_at": at,
        "before_run": run,
        "before_attempt": attempt,
        "statuses": among(sorted(query.statuses or ENDED)),
        "origins": among(sorted(query.origins or Origin)),
        "node": query.node,
        "session": query.session,
        "limit": query.limit,
    }
    if query.job is None and query.statuses and Status.SUCCEEDED not in query.statuses:
        found, ends = list[Record](), list[RecordKey]()
        for status in sorted(query.statuses):
            some, end = _looked(link, "history_of_status", params | {"status": status}, query, filters=query.filters)
            found += some
            ends += [] if end is None else [end]
        return _page(query, nlargest(query.limit, found, key=key_of), max(ends, default=None))
    name, filters = "history" if query.job is None else "history_of_job", query.filters or bool(query.statuses)
    return _page(query, *_looked(link, name, params, query, filters=filters))


def _looked(
    link: SqlLink, name: str, params: dict[str, Any], query: Query, *, filters: bool
) -> tuple[list[Record], RecordKey | None]:
    """Return the records that were found, and the last that was looked at if the search was broken off before `limit`.

    Without a filter every record that is looked at is found: too few of them are all there are.
    """
    scan = query.most if filters else query.limit
    found = [record_of(row) for row in link.all(name, params | {"scan": scan})]
    if not filters or len(found) >= query.limit:
        return found, None
    end = link.all(f"end_of_{name}", params | {"scan": scan - 1}) if scan > len(found) else []
    return found, (end[0][0], end[0][1], end[0][2]) if end else None


def _page(query: Query, found: Sequence[Record], end: RecordKey | None) -> Page:
    """`end` is where the search was broken off; what was found before that place is complete."""
    if end is not None:
        found = [record for record in found if key_of(record) >= end]
    if len(found) == query.limit:
        return Page(tuple(found), key_of(found[-1]))
    return Page(tuple(found), end, None if end is None else end[0])
