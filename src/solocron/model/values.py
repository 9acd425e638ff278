"""`dataclasses.replace` for the documents of the machine, at less than half its price.

A run costs half a dozen new versions of its job, so this is where the machine spends its time. Only for frozen classes
with slots whose constructor does nothing but keep what it is given.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["replace"]

if TYPE_CHECKING:
    from dataclasses import replace  # so that the checker knows the fields of each class
else:

    def replace(value, /, **changes):
        """A new value with these fields changed."""
        cls = type(value)
        read, setters, by_name = _access(cls)
        new = object.__new__(cls)
        for put, old in zip(setters, read(value), strict=True):
            put(new, old)
        for name, wanted in changes.items():
            by_name[name](new, wanted)
        return new


@cache
def _access(cls: type[Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """How to read all fields of a class at once, and to write each."""
    assert not hasattr(cls, "__post_init__"), "its constructor does more than keep what it is given"
    names = tuple(field.name for field in fields(cls))
    by_name = {name: getattr(cls, name).__set__ for name in names}
    return attrgetter(*names), tuple(by_name.values()), by_name
