"""Frozen values at a fraction of the price of `dataclasses`: the keywords of the constructor are the fields.

A run costs half a dozen new versions of its job and a handful of holds and records. A frozen class with slots sets each
field by itself, twice for a copy. A class without slots keeps its fields in a dictionary, which is made and copied as a
whole: half the price for a hold, a quarter for a changed job.

The type checker sees an ordinary dataclass: a field that is missing, misspelt or of the wrong type is an error there.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

__all__ = ["build", "fast_init", "replace"]

P = ParamSpec("P")
T = TypeVar("T")
_put = object.__setattr__


def fast_init(cls: type[T]) -> type[T]:
    """Give a frozen dataclass (without slots, keywords only) a constructor that keeps the keywords as its fields.

    Defaults stay with the class. Nothing is checked at run time.
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


if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import replace  # so that the checker knows the fields of each class

    def build(cls: Callable[P, T], /, *args: P.args, **facts: P.kwargs) -> T: ...

else:

    def build(cls, /, **facts):
        """Return `cls(**facts)` of a class with `fast_init`, at two thirds of the price.

        A call of a class packs its keywords twice, once for `__init__`; a call of a function packs them once. For what
        each run makes. Fields with a default factory must be given.
        """
        new = object.__new__(cls)
        _put(new, "__dict__", facts)
        return new

    def replace(value, /, **changes):
        """Return a new value with these fields changed; not for classes whose constructor computes anything."""
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
    """Return how to read all fields of a class with slots at once, and how to write each."""
    assert not hasattr(cls, "__post_init__"), "its constructor does more than keep what it is given"
    names = tuple(field.name for field in fields(cls))
    by_name = {name: getattr(cls, name).__set__ for name in names}
    return attrgetter(*names), tuple(by_name.values()), by_name
