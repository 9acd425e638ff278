"""Parameters of routes: each is declared once, read strictly, and described for OpenAPI.

A value out of range is refused and never clamped: a client that asks for 500 and gets 200 takes the rest for missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from solocron.jobs.checks import NAME
from solocron.model.change import Kind
from solocron.service.problems import FieldFault, ProblemError

__all__ = [
    *("PATH_PATTERNS", "Parameter", "choice", "choices", "instant", "local_instant", "name"),
    *("read_instant", "read_local", "read_query", "text", "whole"),
]

_MOST_FIELDS = 64
_LONGEST = 512

PATH_PATTERNS = {
    "job": NAME.pattern,
    "run": rf"{NAME.pattern}@[0-9a-f]{{16}}(#[A-Za-z0-9_.-]{{1,32}})?",
    "session": r"[A-Za-z0-9_.:-]{1,128}",
    "calendar": NAME.pattern,
    "digest": "[0-9a-f]{16}",
    "file": r"[a-z][a-z0-9.-]{0,63}",
    "kind": "|".join(Kind),
    "document": r"[^\x00-\x1f\x7f]{1,200}",
    "lock": r"[^\x00-\x1f\x7f]{1,200}",
}
"""The form of each name in a path. Anything else is 404, without a look into the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a query."""

    name: str
    read: Callable[[str], Any]
    """Return the value, or raise ValueError with what would be right."""
    schema: dict[str, Any]
    summary: str
    default: Any = None
    listed: bool = False
    """True if it may be given several times."""
    required: bool = False


def text(name: str, summary: str, *, most: int = 128, required: bool = False, listed: bool = False) -> Parameter:
    """Declare a printable string, or with `listed` several."""

    def read(given: str) -> str:
        if not 0 < len(given) <= most or not given.isprintable():
            raise ValueError(f"1 to {most} printable characters")
        return given

    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": most}
    if listed:
        items = {"type": "array", "items": schema}
        return Parameter(name=name, read=read, schema=items, summary=summary, default=(), listed=True)
    return Parameter(name=name, read=read, schema=schema, summary=summary, required=required)


def name(name: str, summary: str) -> Parameter:
    """Declare the name of a job, a pool or a node."""

    def read(given: str) -> str:
        if not NAME.fullmatch(given):
            raise ValueError("a name: 1 to 128 letters, digits, '_', '.', ':' or '-'")
        return given

    schema = {"type": "string", "pattern": f"^{NAME.pattern}$"}
    return Parameter(name=name, read=read, schema=schema, summary=summary)


def whole(name: str, summary: str, *, least: int, most: int, default: int | None = None) -> Parameter:
    """Declare a whole number."""

    def read(given: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", given) or not least <= int(given) <= most:
            raise ValueError(f"{least} to {most}")
        return int(given)

    schema: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return Parameter(name=name, read=read, schema=schema, summary=summary, default=default)


def choice(name: str, summary: str, known: Sequence[str], *, default: str | None = None) -> Parameter:
    """Declare one word of several."""
    schema: dict[str, Any] = {"type": "string", "enum": list(known)}
    if default is not None:
        schema["default"] = default
    return Parameter(name=name, read=_one_of(known), schema=schema, summary=summary, default=default)


def choices(name: str, summary: str, known: Sequence[str]) -> Parameter:
    """Declare a list of words: the parameter may be given several times."""
    schema = {"type": "array", "items": {"type": "string", "enum": list(known)}}
    return Parameter(name=name, read=_one_of(known), schema=schema, summary=summary, default=(), listed=True)


def instant(name: str, summary: str, *, required: bool = False) -> Parameter:
    """Declare an instant: ISO-8601 with an offset."""
    schema = {"type": "string", "format": "date-time"}
    return Parameter(name=name, read=read_instant, schema=schema, summary=summary, required=required)


def local_instant(name: str, summary: str) -> Parameter:
    """Declare an instant that may be without an offset, as a field of a page sends it."""
    schema = {"type": "string"}
    return Parameter(name=name, read=read_local, schema=schema, summary=summary)


def read_local(given: str) -> datetime:
    """Return a datetime, without an offset if it has none: it is then a time on the clocks of the page's zone."""
    try:
        found = datetime.fromisoformat(given) if 16 <= len(given) <= 40 else None
    except ValueError:
        found = None
    if found is None or not 1971 <= found.year <= 9000:
        raise ValueError("a day and a time, such as 2026-11-17T02:15")
    return found


def read_instant(given: str) -> datetime:
    """Return an aware datetime of ISO-8601 text; raise ValueError for anything else."""
    wrong = ValueError("an instant with its offset, such as 2026-11-17T02:15:00Z")
    try:
        found = datetime.fromisoformat(given) if 16 <= len(given) <= 40 else None
    except ValueError:
        raise wrong from None
    if found is None or found.utcoffset() is None or not 1971 <= found.year <= 9000:
        raise wrong
    return found


def read_query(query: str, declared: Sequence[Parameter], *, from_form: bool = False) -> dict[str, Any]:
    """Return every declared parameter with its value or default; raise a 400 that names each one that is wrong.

    A form sends every field, so `from_form` takes an empty one as not given.
    """
    pairs = [(key, value) for key, value in _pairs(query) if value or not from_form]
    faults: list[FieldFault] = []
    by_name = {one.name: one for one in declared}
    given: dict[str, list[Any]] = {}
    for key, value in pairs:
        parameter = by_name.get(key)
        if parameter is None:
            known = ", ".join(by_name) or "none"
            faults.append(FieldFault("query", key[:64], f"not known here; known: {known}"))
            continue
        if key in given and not parameter.listed:
            faults.append(FieldFault("query", key, "given twice"))
            continue
        try:
            given.setdefault(key, []).append(parameter.read(value))
        except ValueError as error:
            faults.append(FieldFault("query", key, str(error)))
    faults += [
        FieldFault("query", one.name, "required")
        for one in declared
        if one.required and one.name not in given and all(fault.name != one.name for fault in faults)
    ]
    if faults:
        first = faults[0]
        raise ProblemError(400, f"{first.name}: {first.message}. Nothing was read.", code="InvalidError", fields=faults)
    return {
        one.name: (tuple(given.get(one.name) or one.default) if one.listed else given.get(one.name, [one.default])[0])
        for one in declared
    }


def _pairs(query: str) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:  # UnicodeDecodeError is one
        raise ProblemError(
            400, f"the query cannot be read: at most {_MOST_FIELDS} fields name=value, percent-encoded as UTF-8.",
            code="InvalidError",
        ) from None  # fmt: skip
    for key, value in pairs:
        if len(value) > _LONGEST:
            fault = FieldFault("query", key[:64], f"at most {_LONGEST} characters")
            raise ProblemError(400, f"{key[:64]} is too long.", code="InvalidError", fields=[fault])
    return pairs


def _one_of(known: Sequence[str]) -> Callable[[str], str]:
    def read(given: str) -> str:
        if given not in known:
            raise ValueError(f"one of {', '.join(known)}")
        return given

    return read
