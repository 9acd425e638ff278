"""What a job's `on_retry` may answer before a run is repeated after a crash: it was done, repeat it, or give it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solocron.errors import Invalid
from solocron.jobs.unfinished import unfinished

__all__ = ["Retry"]

_ANSWERS = ("done", "repeat", "give up")


@dataclass(frozen=True, slots=True)
class Retry:
    """An answer and its reason, which goes on record: `Retry.done("the bank has it")`."""

    answer: str
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.answer not in _ANSWERS:
            raise Invalid(f"Retry({self.answer!r:.40}) is not known; use Retry.done, Retry.repeat or Retry.give_up.")

    @classmethod
    def done(cls, reason: str | None = None) -> Retry:
        """The attempt that crashed had done its work: the run is recorded as succeeded."""
        return cls("done", reason)

    @classmethod
    def repeat(cls, reason: str | None = None) -> Retry:
        """It had not, or doing it again does no harm: the run is repeated."""
        return cls("repeat", reason)

    @classmethod
    def give_up(cls, reason: str | None = None) -> Retry:
        """A person must look: the run is recorded as failed and not repeated."""
        return cls("give up", reason)

    @classmethod
    def read(cls, answer: Any) -> Retry:
        """What a hook returned; one of the three words will do as well."""
        if isinstance(answer, Retry):
            return answer
        if isinstance(answer, str) and answer in _ANSWERS:
            return cls(answer)
        unfinished(answer)  # a coroutine that nobody awaits is closed
        raise Invalid(
            f"on_retry answered {answer!r:.80}, which says nothing; return Retry.done(), Retry.repeat() or "
            "Retry.give_up(), each with a reason. The run was not repeated."
        )
