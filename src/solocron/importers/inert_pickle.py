"""Read a pickle without running anything of it: no class that it names is imported, no function is called.

Loading a pickle calls what the data says, so a row of a job store can run any program in the process that reads it.
Here its instructions are listed and carried out on values of this module: a name is a `PickledName`, an object is an
`Inert` that keeps its arguments and its state. Only instants, durations, zones and plain containers are made.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from solocron.errors import InvalidError
from solocron.schedules import load_zone

__all__ = ["Inert", "read_inert"]

_LARGEST = 1 << 20
_MARK = object()


@dataclass(frozen=True, slots=True)
class PickledName:
    """A class or a function that the pickle names; it is not imported."""

    origin: str


@dataclass(slots=True, eq=False)
class Inert:
    """An object of a class that was not imported, or the result of a function that was not called."""

    origin: str
    args: Any = ()
    state: Any = None


def read_inert(data: bytes) -> Any:
    """Return what a pickle holds: plain values, and inert objects for the rest."""
    if len(data) > _LARGEST:
        raise InvalidError(f"it has {len(data):,} bytes, more than a job needs.")
    try:
        return _Reading().run(data)
    except InvalidError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged or hostile data breaks wherever it likes
        raise InvalidError(f"it cannot be read as data ({type(error).__name__}).") from None


class _Reading:
    """A stack and a memo, as the format describes them."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        for instruction, argument, _ in pickletools.genops(data):
            name = instruction.name
            if name == "STOP":
                return self.stack.pop()
            if name in _PUSHES:
                self.stack.append(_PUSHES[name](argument))
            elif name in _STEPS:
                _STEPS[name](self, argument)
            elif name not in ("PROTO", "FRAME"):
                raise InvalidError(f"it has an instruction, {name}, that no job needs.")
        raise InvalidError("it has no end.")

    def above_mark(self) -> list[Any]:
        at = max(place for place, one in enumerate(self.stack) if one is _MARK)
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def top(self, count: int) -> list[Any]:
        found = self.stack[-count:]
        if len(found) < count or any(one is _MARK for one in found):
            raise InvalidError("it takes more than it has put.")
        del self.stack[-count:]
        return found

    def extend(self, values: list[Any]) -> None:
        kind = self.stack[-1]
        if isinstance(kind, set):
            kind.update(values)
        elif isinstance(kind, list):
            kind.extend(values)
        else:
            raise InvalidError("it adds to what is not a list.")

    def put(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise InvalidError("it sets a key of what is not a mapping.")
        target.update(_mapping(values))

    def build(self) -> None:
        (state,) = self.top(1)
        target = self.stack[-1]
        if not isinstance(target, Inert):
            raise InvalidError("it gives a state to what has none.")
        # A class with slots is kept as a pair: its dictionary, and its slots.
        if isinstance(state, tuple) and len(state) == 2:
            state = {**(state[0] or {}), **(state[1] or {})}
        target.state = state


def _called(what: Any, args: Any) -> Any:
    """Return an instant, a duration, a zone or a set; else an inert object."""
    if not isinstance(what, PickledName) or not isinstance(args, tuple):
        raise InvalidError("it calls what is not a name.")
    make = _MADE.get(what.origin)
    return Inert(what.origin, args) if make is None else make(*args)


def _moment(packed: Any, zone: Any = None) -> datetime:
    if not isinstance(packed, bytes) or not (zone is None or isinstance(zone, tzinfo)):
        raise InvalidError("it has an instant that cannot be read.")
    make: Any = datetime  # a pickle keeps the bytes of an instant, a form that the type checker does not know
    moment: datetime = make(packed) if zone is None else make(packed, zone)
    return moment


def _zone(name: Any, *_: Any) -> tzinfo:
    return load_zone(str(name)).info


def _attribute(owner: Any, name: Any) -> PickledName:
    """Stand for `getattr`, with which a zone names the function that makes it."""
    return PickledName(f"{owner.origin}.{name}")


_MADE: dict[str, Callable[..., Any]] = {
    "datetime.datetime": _moment,
    "datetime.timedelta": timedelta,
    "datetime.timezone": timezone,
    "builtins.set": set,
    "builtins.getattr": _attribute,
    "zoneinfo.ZoneInfo._unpickle": _zone,
    "backports.zoneinfo.ZoneInfo._unpickle": _zone,
    "pytz._p": _zone,
    "pytz._UTC": lambda: _zone("UTC"),
}

_TEXT = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
_BYTES = ("BINBYTES", "SHORT_BINBYTES", "BINBYTES8")
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")

_PUSHES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys((*_TEXT, *_BYTES, *_NUMBERS), lambda value: value),
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_LIST": lambda _: [],
    "EMPTY_DICT": lambda _: {},
    "EMPTY_TUPLE": lambda _: (),
    "EMPTY_SET": lambda _: set(),
    "MARK": lambda _: _MARK,
    "GLOBAL": lambda value: PickledName(value.replace(" ", ".", 1)),
}
"""Instructions that put one value on the stack."""


def _mapping(values: list[Any]) -> dict[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))


def _remember(reading: _Reading, key: int | None) -> None:
    reading.memo[len(reading.memo) if key is None else key] = reading.stack[-1]


def _replace(count: int, make: Callable[..., Any]) -> Callable[[_Reading, Any], None]:
    """Return a step that takes values from the stack and puts one."""
    return lambda reading, _: reading.stack.append(make(*reading.top(count)))


_STEPS: dict[str, Callable[[_Reading, Any], None]] = {
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _remember),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda reading, key: reading.stack.append(reading.memo[key])),
    "POP": lambda reading, _: reading.stack.pop(),
    "POP_MARK": lambda reading, _: reading.above_mark().clear(),
    "DUP": lambda reading, _: reading.stack.append(reading.stack[-1]),
    "TUPLE": lambda reading, _: reading.stack.append(tuple(reading.above_mark())),
    "TUPLE1": _replace(1, lambda one: (one,)),
    "TUPLE2": _replace(2, lambda one, two: (one, two)),
    "TUPLE3": _replace(3, lambda one, two, three: (one, two, three)),
    "LIST": lambda reading, _: reading.stack.append(reading.above_mark()),
    "DICT": lambda reading, _: reading.stack.append(_mapping(reading.above_mark())),
    "FROZENSET": lambda reading, _: reading.stack.append(frozenset(reading.above_mark())),
    "APPEND": lambda reading, _: reading.extend(reading.top(1)),
    "APPENDS": lambda reading, _: reading.extend(reading.above_mark()),
    "ADDITEMS": lambda reading, _: reading.extend(reading.above_mark()),
    "SETITEM": lambda reading, _: reading.put(reading.top(2)),
    "SETITEMS": lambda reading, _: reading.put(reading.above_mark()),
    "STACK_GLOBAL": _replace(2, lambda module, name: PickledName(f"{module}.{name}")),
    "REDUCE": _replace(2, _called),
    "NEWOBJ": _replace(2, _called),
    "NEWOBJ_EX": _replace(3, lambda what, args, _: _called(what, args)),
    "BUILD": lambda reading, _: reading.build(),
}
"""Instructions that work on the stack; `argument` is the number of a memo."""
