"""Cursors: where the next page of a list begins, as opaque text that fits only the filters it was made for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from solocron.service.parameters import Parameter, text, whole
from solocron.service.problems import FieldFault, ProblemError

__all__ = ["PAGED", "Listing", "make_cursor", "page_by_name", "read_cursor"]

T = TypeVar("T")

PAGED: tuple[Parameter, ...] = (
    whole("limit", "how many at most", least=1, most=200, default=50),
    text("cursor", "the `next` of the page before", most=512),
)
"""The parameters of every list."""
_NOT_FILTERS = frozenset(["limit", "cursor"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """A page of a list. There is no total: counting would read everything."""

    items: tuple[T, ...]
    next: str | None
    """The cursor of the next page; None if there is nothing more."""
    as_of: datetime
    """The store's time."""
    looked_back_to: datetime | None = None
    """Set if the page is short because as many records were looked at as one request may; `next` goes on."""


def make_cursor(position: str, path: str, given: Mapping[str, Any]) -> str:
    """Return the cursor for what follows `position`."""
    packed = json.dumps([position, _fingerprint(path, given)], separators=(",", ":"))
    return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")


def read_cursor(path: str, given: Mapping[str, Any]) -> str | None:
    """Return the position in the request's cursor; None on the first page. Raise a 400 for any other cursor."""
    cursor = given["cursor"]
    if cursor is None:
        return None
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position, fingerprint = json.loads(packed)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise bad_cursor("it was not made here") from None
    if not isinstance(position, str) or not position or not position.isprintable():
        raise bad_cursor("it was not made here")
    if fingerprint != _fingerprint(path, given):
        raise bad_cursor("it belongs to other filters; begin without one")
    return position


def bad_cursor(why: str) -> ProblemError:
    """Return the problem of a cursor that does not fit."""
    fault = FieldFault("query", "cursor", why)
    return ProblemError(400, f"cursor: {why}. Nothing was read.", code="InvalidError", fields=[fault])


def page_by_name(
    items: Sequence[T], name_of: Callable[[T], str], *, path: str, given: Mapping[str, Any], as_of: datetime
) -> Listing[T]:
    """Return a page of a list that is short enough to be read whole, by name."""
    after = read_cursor(path, given) or ""
    rest = sorted((one for one in items if name_of(one) > after), key=name_of)
    shown = rest[: given["limit"]]
    following = make_cursor(name_of(shown[-1]), path, given) if len(rest) > len(shown) else None
    return Listing(items=tuple(shown), next=following, as_of=as_of)


def _fingerprint(path: str, given: Mapping[str, Any]) -> str:
    filters = sorted((key, str(value)) for key, value in given.items() if key not in _NOT_FILTERS)
    return hashlib.blake2b(repr((path, filters)).encode(), digest_size=6).hexdigest()
