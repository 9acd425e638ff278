"""Text that is safe to print: a value of a job or a user cannot move the cursor, or pass for a line of its own."""

from __future__ import annotations

__all__ = ["clean"]


def clean(text: str, *, lines: bool = False) -> str:
    """Escape control characters, so that a value cannot move the terminal's cursor or forge a line."""
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)
