"""The name that was probably meant: one place that finds it, so that every refusal helps in the same way."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]


def nearest(word: str, known: Iterable[str], *, n: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most `n` known names that a word is near to, the nearest first."""
    from difflib import get_close_matches  # only a mistake needs it

    return get_close_matches(word, sorted(map(str, known)), n=n, cutoff=cutoff)


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the question after the nearest name; `otherwise` if none is near."""
    close = nearest(word, known)
    return f"did you mean {close[0]!r}?" if close else otherwise
