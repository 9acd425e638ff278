"""A preparation that a process must have had before it imports `booted_jobs`."""

from __future__ import annotations

calls = 0


def boot() -> None:
    global calls
    calls += 1


def require() -> None:
    """Raise what Django raises for a model that is imported too early."""
    if not calls:
        raise RuntimeError("Apps aren't loaded yet.")
