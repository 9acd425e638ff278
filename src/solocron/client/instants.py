"""Instants that a caller passes: one check, so that each mistake is told in the same words."""

from __future__ import annotations

from datetime import datetime

from solocron.errors import InvalidError

__all__ = ["check_instant"]


def check_instant(name: str, given: object, *, undone: str) -> None:
    """Refuse what is not an aware datetime; `name` is that of the parameter."""
    if not isinstance(given, datetime):
        raise InvalidError(f"{name}={given!r:.80} is not a datetime; {undone}. Pass an aware datetime.")
    if given.utcoffset() is None:
        raise InvalidError(f"{name}={given!r} has no time zone; {undone}. Pass an aware datetime.")
