"""The author of an act and the author's reason: how long they may be, wherever they are kept."""

from __future__ import annotations

from solocron.errors import InvalidError

__all__ = ["AUTHOR_LIMIT", "NOTE_LIMIT", "check_author"]

AUTHOR_LIMIT = 200
NOTE_LIMIT = 500


def check_author(by: str | None, note: str | None, *, undone: str, called: str = "note") -> None:
    """Refuse an author or a note that is not a string of a sensible length; `called` is the argument of the note."""
    for what, text, most in (("by", by, AUTHOR_LIMIT), (called, note, NOTE_LIMIT)):
        if text is not None and (not isinstance(text, str) or len(text) > most):
            raise InvalidError(f"{what}={text!r:.60} cannot be used: a string of at most {most} characters; {undone}.")
