"""Every error that Solocron raises, one sentence each; the class carries the exit code of the command line.

SolocronError
 +- Invalid                 also a ValueError
 |   +- InvalidSchedule
 |   +- MissingExtra        also an ImportError
 |   +- NotEntered          also a TypeError
 +- NotFound                also a LookupError
 |   +- EmptyStore
 +- Conflict
 |   +- StaleFence
 |   +- LockBusy
 |   +- KeyBusy
 |   +- Uncertain
 +- LeaseLost
 |   +- Cancelled
 +- StoreError
 |   +- StoreUnavailable
 |   +- StoreRefused
 +- WaitTimeout             also a TimeoutError
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "Cancelled",
    "Conflict",
    "EmptyStore",
    "Invalid",
    "InvalidSchedule",
    "KeyBusy",
    "LeaseLost",
    "LockBusy",
    "MissingExtra",
    "NotEntered",
    "NotFound",
    "SolocronError",
    "StaleFence",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "Uncertain",
    "WaitTimeout",
]


class SolocronError(Exception):
    """Something that Solocron noticed; the message says what happened, what was left untouched and what to do."""

    exit_code: ClassVar[int] = 1


class Invalid(SolocronError, ValueError):
    """The caller asked for something that cannot be; nothing was changed."""

    exit_code = 2


class InvalidSchedule(Invalid):
    """A schedule cannot be read, can never fire, or names an unknown zone; the message names the field."""


class MissingExtra(Invalid, ImportError):
    """A store or an edge needs a package that is not installed; the message says which extra brings it."""


class NotEntered(Invalid, TypeError):
    """A block that protects only while it is entered was asked whether it is true; nothing was taken or begun."""


class NotFound(SolocronError, LookupError):
    """No job, run or node of that name exists in this namespace."""

    exit_code = 3


class EmptyStore(NotFound):
    """Nothing of Solocron's is at this place: no file, no tables, no keys, or nothing in this namespace."""


class Conflict(SolocronError):
    """The store holds something that forbids this change; nothing was written."""

    exit_code = 4


class StaleFence(Conflict):
    """A write showed a fence that is no longer the current one; it was refused and nothing was written."""


class LockBusy(Conflict):
    """Somebody else has the lock; the body did not run."""


class KeyBusy(Conflict):
    """A live holder is at work under this idempotency key; the effect was not begun a second time."""


class Uncertain(Conflict):
    """Whoever began this effect died in the middle of it: it may have happened. Nothing was begun or marked."""


class LeaseLost(SolocronError):
    """This node can no longer prove its lease: the body must stop, and nothing it writes will be accepted."""

    exit_code = 4


class Cancelled(LeaseLost):
    """Someone asked this run to stop (a person, its timeout, its replacement or a shutdown)."""


class StoreError(SolocronError):
    """The store did not do what was asked of it."""

    exit_code = 5


class StoreUnavailable(StoreError):
    """The store cannot be reached; nothing runs until it answers again."""


class StoreRefused(StoreError):
    """The store answers, but may not be used as it is: wrong settings, a read-only disk, a foreign schema."""


class WaitTimeout(SolocronError, TimeoutError):
    """What was waited for did not happen in time; it may still happen."""

    exit_code = 6
