"""The exit codes of the command line and their meanings. Each error class carries its code."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DIFFERENT", "EXITS", "FAILED", "INTERRUPTED", "OK", "TAKEN", "USAGE", "explained"]

OK, FAILED, USAGE, TAKEN, DIFFERENT, INTERRUPTED = 0, 1, 2, 4, 7, 130

EXITS: Mapping[int, str] = {
    OK: "done",
    FAILED: "the work failed, or a check found errors",
    USAGE: "the command cannot be understood or cannot be done as asked",
    3: "no such job, run or node, or nothing there at all",
    TAKEN: "a conflict, or a stale fence: nothing was written",
    5: "the store cannot be reached or refuses",
    6: "what was waited for did not happen in time",
    DIFFERENT: "`diff`: there are differences, and no problem",
    INTERRUPTED: "interrupted (`run`: twice)",
}


def explained() -> str:
    """Return the codes as `--help` shows them."""
    return "exit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXITS.items())
