"""Frozen values at a fraction of the price of `dataclasses`: made from a dictionary, copied as one.

A run costs half a dozen new versions of its job and a handful of holds and records, so this is where the machine spends
its time. A frozen class with slots pays for each field by itself, twice for a copy; one without keeps its fields in a
dictionary, which is made and copied as a whole.

For the same reason the modules that every run passes keep the members of enumerations that they compare with under
names of their own: on Python 3.11 an attribute of an enumeration costs as much as a small call, and a run asks for
fifty.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["fast_init", "from_fields", "replace"]

T = TypeVar("T")
_put = object.__setattr__


def fast_init(cls: type[T]) -> type[T]:
    """Give a frozen dataclass (without slots, keywords only) a constructor that keeps the keywords as they come.

    Defaults stay with the class. The type checker sees to it that nothing is missing or misspelt.
    """
    made = {field.name: field.default_factory for field in fields(cls) if field.default_factory is not MISSING}  # type: ignore[arg-type]
    if made:

        def init(self: Any, /, **facts: Any) -> None:
            for name, make in made.items():
                if name not in facts:
                    facts[name] = make()
            _put(self, "__dict__", facts)

    else:

        def init(self: Any, /, **facts: Any) -> None:
            _put(self, "__dict__", facts)

    assert not hasattr(cls, "__post_init__"), "its constructor does more than keep what it is given"
    assert not hasattr(cls, "__slots__"), "its fields are not in a dictionary"
    cls.__init__ = init  # type: ignore[method-assign, assignment]
    return cls


def from_fields(cls: type[T], facts: dict[str, Any]) -> T:
    """A value of a quick class that keeps the very dictionary: every field without a default must be in it."""
    new = object.__new__(cls)
    _put(new, "__dict__", facts)
    return new


if TYPE_CHECKING:
    from dataclasses import replace  # so that the checker knows the fields of each class
else:

    def replace(value, /, **changes):
        """A new value with these fields changed; not for classes whose constructor computes anything."""
        cls = type(value)
        new = object.__new__(cls)
        facts = getattr(value, "__dict__", None)
        if facts is not None:
            if not changes.keys() <= cls.__dataclass_fields__.keys():
                raise KeyError(*changes.keys() - cls.__dataclass_fields__.keys())
            _put(new, "__dict__", facts | changes)
            return new
        read, setters, by_name = _access(cls)
        for put, old in zip(setters, read(value), strict=True):
            put(new, old)
        for name, wanted in changes.items():
            by_name[name](new, wanted)
        return new


@cache
def _access(cls: type[Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """How to read all fields of a class with slots at once, and to write each."""
    assert not hasattr(cls, "__post_init__"), "its constructor does more than keep what it is given"
    names = tuple(field.name for field in fields(cls))
    by_name = {name: getattr(cls, name).__set__ for name in names}
    return attrgetter(*names), tuple(by_name.values()), by_name
