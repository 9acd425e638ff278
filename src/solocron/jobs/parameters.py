"""Choose the parameter of a function that gets the run: one that asks for it, never one that merely could take it.

A parameter asks by its annotation, by the name `run`, or by having no default. The others keep their defaults; a
function with a further parameter that has none cannot be called.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

__all__ = ["Taking", "other_than_run", "taking"]

_EMPTY: Mapping[str, Any] = {}
_OPTIONAL = re.compile(r"(?:[\w.]+\.)?(?:Optional|Union)\[(.*)\]")
_RUN = ("solocron.runs.base", "BaseRun")
"""Base of `Run` and `AsyncRun`, by name: this folder lies below theirs and cannot import it."""


class Taking(NamedTuple):
    """The way a function takes the run."""

    takes_run: bool
    by_name: str | None
    """The parameter's name, where the run cannot be passed as the first argument."""
    missing: list[str]
    """Parameters without a value: the function cannot be called."""


class _Parameter(NamedTuple):
    name: str
    place: int | None
    """Its index among the positional ones; None: by name only."""
    nameless: bool
    """True if it can only be passed by position."""
    needed: bool


def taking(function: Callable[..., Any]) -> Taking:
    """Return how the function takes the run, and which other parameters have no value."""
    known = _plain(function) if _is_plain(function) else _inspected(function)
    if known is None:
        return Taking(False, None, [])  # built-ins without a signature take no run
    chosen = _chosen(function, known)
    missing = [one.name for one in known if one.needed and one is not chosen]
    if chosen is None:
        return Taking(False, None, missing)
    return Taking(True, None if chosen.place == 0 else chosen.name, missing)


def other_than_run(function: Callable[..., Any]) -> list[str]:
    """Return the parameter that would get the run although its annotation names another type; empty if none would."""
    known = (_plain(function) if _is_plain(function) else _inspected(function)) or []
    chosen = _chosen(function, known)
    if chosen is None:
        return []
    annotations, names = _annotations(function)
    annotation = annotations.get(chosen.name, Any)
    return [] if annotation in (Any, "Any", object) or _is_run(annotation, names) else [chosen.name]


def _chosen(function: Callable[..., Any], known: list[_Parameter]) -> _Parameter | None:
    needed = [one for one in known if one.needed and one.place is not None]
    if needed and len(known) == 1:
        return needed[0]
    given = function.keywords if isinstance(function, partial) else _EMPTY
    open_ = [one for one in known if one.name not in given and not (one.nameless and one.place)]
    if not open_:
        return None
    annotations, names = _annotations(function)
    for one in open_:
        if _is_run(annotations.get(one.name), names):
            return one
    named = next((one for one in open_ if one.name == "run"), None)
    return named or (needed[0] if len(needed) == 1 else None)


# --- what a function says of itself ----------------------------------------------------------------------------------


def _is_plain(function: Callable[..., Any]) -> bool:
    return isinstance(function, FunctionType) and not hasattr(function, "__wrapped__")


def _plain(function: Any) -> list[_Parameter]:
    """Read the code object: `inspect` would leave an empty dictionary of annotations on every function without any."""
    code, defaults, known = function.__code__, function.__defaults__ or (), function.__kwdefaults__ or {}
    count, first = code.co_argcount, code.co_argcount - len(defaults)
    positional = [
        _Parameter(name, place, place < code.co_posonlyargcount, place < first)
        for place, name in enumerate(code.co_varnames[:count])
    ]
    keyword = code.co_varnames[count : count + code.co_kwonlyargcount]
    return positional + [_Parameter(name, None, False, name not in known) for name in keyword]


def _inspected(function: Callable[..., Any]) -> list[_Parameter] | None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    known, place = [], 0
    for one in parameters:
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            known.append(_Parameter(one.name, place, one.kind is one.POSITIONAL_ONLY, one.default is one.empty))
            place += 1
        elif one.kind is one.KEYWORD_ONLY:
            known.append(_Parameter(one.name, None, False, one.default is one.empty))
    return known


def _annotations(function: Callable[..., Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the annotations, and the globals in which those that are strings are looked up."""
    found: Any = function
    while isinstance(found, partial):
        found = found.func
    found = inspect.unwrap(found if inspect.isroutine(found) else getattr(found, "__call__", found))  # noqa: B004
    try:
        return getattr(found, "__annotations__", _EMPTY), getattr(found, "__globals__", _EMPTY)
    except NameError:  # evaluated only now, and imported for type checkers alone
        return _EMPTY, _EMPTY


def _is_run(annotation: Any, names: Mapping[str, Any]) -> bool:
    """Return whether an annotation is the run, perhaps in a union (`Run | None`).

    Strings are looked up, not evaluated.
    """
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, str):
        text = annotation.strip(" '\"")
        union = _OPTIONAL.fullmatch(text)
        return any(_names_run(part.strip(" '\""), names) for part in re.split("[|,]", union[1] if union else text))
    if get_origin(annotation) in (Union, UnionType):
        return any(_is_run(part, names) for part in get_args(annotation))
    return isinstance(annotation, type) and any((c.__module__, c.__name__) == _RUN for c in annotation.__mro__)


def _names_run(text: str, names: Mapping[str, Any]) -> bool:
    first, *rest = text.split(".")
    if first not in names:
        return (rest or [first])[-1] in ("Run", "AsyncRun")  # imported for type checkers alone
    found = names[first]
    for part in rest:
        found = getattr(found, part, None)
    return not isinstance(found, str) and _is_run(found, names)
