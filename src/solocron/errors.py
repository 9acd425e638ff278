"""Every error that Solocron raises, one sentence each; the class carries the exit code of the command line, and the
status with which a web handler should answer.
`RunStopped` is not an error and not an `Exception`: it ends a body, and `except Exception` in that body lets it pass.

SolocronError
 +- InvalidError             also a ValueError
 |   +- ConfigurationError
 |   |   +- MissingExtra     also an ImportError
 |   +- ScheduleError
 |   +- NotEntered           also a TypeError
 +- NotFoundError            also a LookupError
 |   +- EmptyStore
 +- ConflictError
 |   +- StaleFence
 |   +- LockBusy
 |   +- KeyBusy
 |   +- UncertainOutcome
 +- LockLost
 +- StoreError
 |   +- StoreUnavailable
 |   +- StoreRefused
 +- WaitTimeout              also a TimeoutError

RunStopped                   a BaseException
 +- LeaseLost
 +- Cancelled
 +- TimedOut
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "Cancelled",
    "ConfigurationError",
    "ConflictError",
    "EmptyStore",
    "InvalidError",
    "KeyBusy",
    "LeaseLost",
    "LockBusy",
    "LockLost",
    "MissingExtra",
    "NotEntered",
    "NotFoundError",
    "RunStopped",
    "ScheduleError",
    "SolocronError",
    "StaleFence",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "TimedOut",
    "UncertainOutcome",
    "WaitTimeout",
]


class SolocronError(Exception):
    """An error that Solocron detected; the message says what happened, what was left untouched and what to do."""

    exit_code: ClassVar[int] = 1
    status: ClassVar[int] = 500


class InvalidError(SolocronError, ValueError):
    """An argument or a request is not valid; nothing was changed."""

    exit_code = 2
    status = 400


class ConfigurationError(InvalidError):
    """A scheduler, its environment or the URL of its store cannot be used as given; nothing was started."""


class MissingExtra(ConfigurationError, ImportError):
    """A store or an edge needs a package that is not installed; the message says which extra brings it."""

    status = 503


class ScheduleError(InvalidError):
    """A schedule cannot be read, can never fire, or names an unknown zone; the message names the field."""


class NotEntered(InvalidError, TypeError):
    """A block that protects only while it is entered was used as a truth value; nothing was taken or begun."""


class NotFoundError(SolocronError, LookupError):
    """No job, run or node of that name exists in this namespace."""

    exit_code = 3
    status = 404


class EmptyStore(NotFoundError):
    """Solocron has nothing at this place: no file, no tables, no keys, or nothing in this namespace."""


class ConflictError(SolocronError):
    """The store holds something that forbids this change; nothing was written."""

    exit_code = 4
    status = 409


class StaleFence(ConflictError):
    """A write showed a fence that is no longer the current one; it was refused and nothing was written."""


class LockBusy(ConflictError):
    """Another holder has the lock; the body did not run."""


class KeyBusy(ConflictError):
    """A live holder is at work under this idempotency key; the effect was not begun a second time."""


class UncertainOutcome(ConflictError):
    """The process that began this effect died in the middle: it may have happened. Nothing was begun or marked."""


class LockLost(SolocronError):
    """A lock, a leadership or the session of a key can no longer be proved to be ours; stop what it protects."""

    exit_code = 4
    status = 409


class StoreError(SolocronError):
    """The store did not do what was asked of it."""

    exit_code = 5
    status = 503


class StoreUnavailable(StoreError):
    """The store cannot be reached; nothing runs until it responds again."""


class StoreRefused(StoreError):
    """The store responds, but may not be used as it is: wrong settings, a read-only disk, a foreign schema."""


class WaitTimeout(SolocronError, TimeoutError):
    """The awaited event did not happen in time; it may still happen."""

    exit_code = 6
    status = 504


class RunStopped(BaseException):
    """The body of a run must end now. Only a `Run` raises it; let it pass.

    Not an `Exception`, as `asyncio.CancelledError` is not: a body that goes on after `except Exception: continue` would
    work on under a lease that another node has. Outside runs nothing raises it, because in a web handler it would pass
    every error page: a lost lock is `LockLost`.
    """


class LeaseLost(RunStopped):
    """This node can no longer prove its lease: another node may run this slot, and nothing written here is accepted."""


class Cancelled(RunStopped):
    """This run was asked to stop: by a person, by the run that replaces it, or by the shutdown of its node."""


class TimedOut(RunStopped):
    """This run is past its deadline."""
