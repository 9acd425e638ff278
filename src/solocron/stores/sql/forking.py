"""Tells every open store when the process is forked: before, after in the parent, and in the child."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["watch"]


class Forkable(Protocol):
    """Something that holds locks or connections."""

    def before_fork(self) -> None: ...

    def after_fork(self) -> None: ...

    def forked(self) -> None: ...


_watched: WeakSet[Forkable] = WeakSet()


def watch(one: Forkable) -> None:
    """From now on; only what is whole: one that was refused while it was made must not be told."""
    _watched.add(one)


def _before() -> None:
    for one in list(_watched):
        one.before_fork()


def _after() -> None:
    for one in list(_watched):
        one.after_fork()


def _forked() -> None:
    for one in list(_watched):
        one.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_forked)
