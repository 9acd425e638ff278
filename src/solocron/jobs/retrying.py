"""The decision of a job's `on_retry` after a crash: the work was done, repeat it, or give it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solocron.errors import InvalidError
from solocron.jobs.unfinished import unfinished

__all__ = ["RetryDecision"]

_CHOICES = ("done", "repeat", "give up")


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """Decision about a run after a crash, with a reason for its record: `RetryDecision.done("the bank has it")`."""

    choice: str
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.choice not in _CHOICES:
            raise InvalidError(f"RetryDecision({self.choice!r:.40}) is not known; use its .done, .repeat or .give_up.")

    @classmethod
    def done(cls, reason: str | None = None) -> RetryDecision:
        """Return the decision to record the run as succeeded: the attempt that crashed had done its work."""
        return cls("done", reason)

    @classmethod
    def repeat(cls, reason: str | None = None) -> RetryDecision:
        """Return the decision to repeat the run: the work was not done, or doing it again does no harm."""
        return cls("repeat", reason)

    @classmethod
    def give_up(cls, reason: str | None = None) -> RetryDecision:
        """Return the decision to record the run as failed and not to repeat it: a person must look."""
        return cls("give up", reason)

    @classmethod
    def read(cls, returned: Any) -> RetryDecision:
        """Convert what a hook returned; one of the three words will do as well."""
        if isinstance(returned, RetryDecision):
            return returned
        if isinstance(returned, str) and returned in _CHOICES:
            return cls(returned)
        unfinished(returned)  # closes a coroutine that would never be awaited
        raise InvalidError(
            f"on_retry returned {returned!r:.80}, which is not a decision; return RetryDecision.done(), .repeat() or "
            ".give_up(), each with a reason. The run was not repeated."
        )
