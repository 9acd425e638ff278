"""A job without a function here: its runs are forwarded to a target that the other side of a carrier knows."""

from __future__ import annotations

from collections.abc import Mapping

from solocron.errors import InvalidError

__all__ = ["Forwarded", "check_target", "refuse_own_end"]

TARGET_LIMIT = 500
THEIRS = ("timeout", "retries", "backoff", "on_crash", "on_lost", "on_stuck", "memory", "cpu")
"""Options that speak of a body, which runs where nothing of it is known here."""


class Forwarded:
    """Stands in for the function of a forwarded job, and is never called. Its module is the one that declared it."""

    def __init__(self, name: str, target: str, module: str) -> None:
        self.target = target
        self.__module__ = module
        self.__qualname__ = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forwarded) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.target, self.__module__, self.__qualname__))

    def __call__(self) -> None:
        raise InvalidError(f"this job is forwarded to {self.target!r} and has no function here; nothing was run.")


def check_target(target: object, name: str) -> str:
    """Return the target of a forwarded job: a short line of text that the other side understands."""
    if not isinstance(target, str) or not target or len(target) > TARGET_LIMIT or not target.isprintable():
        raise InvalidError(
            f"{name}: target={target!r:.80} cannot be used: give the name of a task, or whatever the other side knows "
            f"it by, in 1 to {TARGET_LIMIT} printable characters. Nothing was registered."
        )
    return target


def refuse_own_end(name: str, options: Mapping[str, object]) -> None:
    """Refuse options that only the process that runs the body can keep to."""
    if "run_in" in options:
        raise InvalidError(f"{name}: run_in= is the carrier, which is given already. Nothing was registered.")
    for option in THEIRS:
        if option in options:
            raise InvalidError(
                f"{name}: {option}= is not for a forwarded job, whose end is not known here. Nothing was registered; "
                "set it on the other side."
            )
