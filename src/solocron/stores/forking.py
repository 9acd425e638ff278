"""Tells open stores and stocks of connections when the process is forked: before, after in the parent, in the child."""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

__all__ = ["watch"]


class Forkable(Protocol):
    """Something that holds locks or connections."""

    def before_fork(self) -> None: ...

    def after_fork(self) -> None: ...

    def forked(self) -> None: ...


_watched: WeakSet[Forkable] = WeakSet()
_mutex = threading.RLock()
"""A store that is made on another thread must not upset the list of those to tell."""


def watch(one: Forkable) -> None:
    """From now on; only what is whole: one that was refused while it was made must not be told."""
    with _mutex:
        _watched.add(one)


def _all() -> list[Forkable]:
    with _mutex:
        return list(_watched)


def _before() -> None:
    for one in _all():
        one.before_fork()


def _after() -> None:
    for one in _all():
        one.after_fork()


def _forked() -> None:
    global _mutex
    _mutex = threading.RLock()  # a thread that does not exist in the child may have held the old one
    for one in _all():
        one.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_forked)
