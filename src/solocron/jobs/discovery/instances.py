"""Jobs on objects: the methods of an instance, bound to it; the static and class methods of a class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from solocron.errors import InvalidError
from solocron.jobs.decorators import declarations

__all__ = ["methods_of"]


def methods_of(target: object) -> Iterator[Any]:
    """Every declared method, bound once; a class can only offer those that need no instance."""
    cls = target if isinstance(target, type) else type(target)
    seen: set[str] = set()
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if name in seen or not declarations(value):
                continue
            seen.add(name)
            if getattr(cls, name, None) is None:  # an override set to None takes the job away
                continue
            if isinstance(target, type) and not isinstance(value, staticmethod | classmethod):
                raise InvalidError(
                    f"{cls.__qualname__}.{name} needs an instance: discover({cls.__qualname__}(...)) instead of the "
                    "class. Nothing was registered."
                )
            method = getattr(target, name)
            if declarations(method):  # an override without the decorator is not the job
                yield method
