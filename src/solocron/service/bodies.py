"""Bodies: one reader for JSON, with limits, and the fields that a route declares."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from solocron.jobs.checks import NAME, SHARD_NAME
from solocron.service.parameters import read_instant, read_local
from solocron.service.problems import FieldFault, ProblemError

__all__ = ["LARGEST_BODY", "BodyField", "read_body", "read_form"]

LARGEST_BODY = 64 * 1024
_DEEPEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyField:
    """One key of a body."""

    name: str
    read: Callable[[Any], Any]
    """Return the value, or raise ValueError with what would be right."""
    schema: Mapping[str, Any]
    summary: str
    required: bool = False

    @classmethod
    def text(cls, name: str, summary: str, *, most: int, required: bool = False) -> BodyField:
        """Declare a string."""

        def read(given: Any) -> str:
            if not isinstance(given, str) or not 0 < len(given) <= most:
                raise ValueError(f"a string of 1 to {most} characters")
            return given

        schema = {"type": "string", "minLength": 1, "maxLength": most}
        return cls(name=name, read=read, schema=schema, summary=summary, required=required)

    @classmethod
    def instant(cls, name: str, summary: str, *, required: bool = False) -> BodyField:
        """Declare an instant: ISO-8601 with an offset."""

        def read(given: Any) -> datetime:
            return read_instant(given if isinstance(given, str) else "")

        schema = {"type": "string", "format": "date-time"}
        return cls(name=name, read=read, schema=schema, summary=summary, required=required)

    @classmethod
    def local(cls, name: str, summary: str, *, required: bool = False) -> BodyField:
        """Declare an instant of a form, which may be a time on the clocks of the page's zone."""

        def read(given: Any) -> datetime:
            return read_local(given if isinstance(given, str) else "")

        return cls(name=name, read=read, schema={"type": "string"}, summary=summary, required=required)

    @classmethod
    def whole(cls, name: str, summary: str, *, least: int, most: int, required: bool = False) -> BodyField:
        """Declare a whole number."""

        def read(given: Any) -> int:
            if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
                raise ValueError(f"a whole number from {least} to {most}")
            return given

        schema = {"type": "integer", "minimum": least, "maximum": most}
        return cls(name=name, read=read, schema=schema, summary=summary, required=required)

    @classmethod
    def digits(cls, name: str, summary: str, *, most: int, required: bool = False) -> BodyField:
        """Declare a whole number of a form, which is text there."""

        def read(given: Any) -> int:
            text = given if isinstance(given, str) else ""
            if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > most:
                raise ValueError(f"a whole number from 0 to {most}")
            return int(text)

        return cls(name=name, read=read, schema={"type": "string"}, summary=summary, required=required)

    @classmethod
    def listed_names(cls, name: str, summary: str, *, most: int) -> BodyField:
        """Declare names of jobs in a form, with spaces between them."""
        listed = cls.names(name, summary, most=most)

        def read(given: Any) -> Any:
            return listed.read(given.split() if isinstance(given, str) else None)

        return cls(name=name, read=read, schema={"type": "string"}, summary=summary, required=True)

    @classmethod
    def choice(cls, name: str, summary: str, known: Sequence[str], *, required: bool = False) -> BodyField:
        """Declare one word of several."""

        def read(given: Any) -> str:
            if given not in known:
                raise ValueError(f"one of {', '.join(known)}")
            return str(given)

        schema = {"type": "string", "enum": list(known)}
        return cls(name=name, read=read, schema=schema, summary=summary, required=required)

    @classmethod
    def names(cls, name: str, summary: str, *, most: int) -> BodyField:
        """Declare a list of names of jobs."""

        def read(given: Any) -> tuple[str, ...]:
            good = isinstance(given, list) and 0 < len(given) <= most
            if not good or not all(isinstance(one, str) and NAME.fullmatch(one) for one in given):
                raise ValueError(f"1 to {most} names of jobs")
            return tuple(dict.fromkeys(given))

        items = {"type": "string", "pattern": f"^{NAME.pattern}$"}
        schema = {"type": "array", "items": items, "minItems": 1, "maxItems": most}
        return cls(name=name, read=read, schema=schema, summary=summary, required=True)

    @classmethod
    def shard(cls, name: str, summary: str) -> BodyField:
        """Declare the number or the name of a shard."""

        def read(given: Any) -> int | str:
            number = isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 10_000
            if not number and not (isinstance(given, str) and SHARD_NAME.fullmatch(given)):
                raise ValueError("the number or the name of a shard")
            return given  # type: ignore[no-any-return]

        schema = {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 9_999},
                {"type": "string", "pattern": f"^{SHARD_NAME.pattern}$"},
            ]
        }
        return cls(name=name, read=read, schema=schema, summary=summary)

    @classmethod
    def typed(cls, name: str, summary: str, schema: Mapping[str, Any], *, required: bool = False) -> BodyField:
        """Declare a value by its JSON types; what it may be beyond that, the client says itself."""
        types = schema.get("type", [])
        known = [types] if isinstance(types, str) else types
        most, items = schema.get("maxLength"), schema.get("items")

        def read(given: Any) -> Any:
            good = not known or _type_of(given) in known or (_type_of(given) == "integer" and "number" in known)
            if good and most is not None and isinstance(given, str):
                good = len(given) <= most
            if good and items is not None and isinstance(given, list):
                good = all(isinstance(one, str) for one in given)
            if not good:
                raise ValueError(" or ".join(one for one in known if one != "null"))
            return given

        return cls(name=name, read=read, schema=schema, summary=summary, required=required)

    @classmethod
    def json(cls, name: str, summary: str) -> BodyField:
        """Declare any JSON value."""
        return cls(name=name, read=lambda given: given, schema={}, summary=summary)


def _type_of(value: Any) -> str:
    """Return the JSON type of a value that was read from JSON."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def read_body(body: bytes, declared: Sequence[BodyField]) -> dict[str, Any]:
    """Return every declared key with its value, or None; raise a 400 that names each one that is wrong.

    An empty body is an empty object: a pause without a note needs none.
    """
    given = _load(body) if body else {}
    by_name, faults = {one.name: one for one in declared}, list[FieldFault]()
    found: dict[str, Any] = dict.fromkeys(by_name)
    for key, value in given.items():
        field = by_name.get(key)
        if field is None:
            faults.append(FieldFault("body", key[:64], f"not known here; known: {', '.join(by_name) or 'none'}"))
            continue
        try:
            found[key] = None if value is None else field.read(value)
        except ValueError as error:
            faults.append(FieldFault("body", key, str(error)))
    bad = {fault.name for fault in faults}
    faults += [
        FieldFault("body", one.name, "required")
        for one in declared
        if one.required and found[one.name] is None and one.name not in bad
    ]
    if faults:
        first = faults[0]
        raise ProblemError(400, f"{first.name}: {first.message}. Nothing was done.", code="InvalidError", fields=faults)
    return found


def read_form(body: bytes, declared: Sequence[BodyField]) -> dict[str, Any]:
    """Return the fields of a form, and `csrf`, which every form of a login has; an empty field is None."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), errors="strict", max_num_fields=64
        )
    except ValueError:  # UnicodeDecodeError is one
        raise _bad("it is not a form in UTF-8") from None
    if len(dict(pairs)) != len(pairs):
        raise _bad("a field is there twice")
    filled = json.dumps({name: value for name, value in pairs if value}).encode()
    return read_body(filled, (*declared, BodyField.text("csrf", "of the page", most=64)))


def _load(body: bytes) -> dict[str, Any]:
    try:
        # utf-8 alone: `json` would guess other encodings from the first bytes.
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be stored
    except RecursionError:
        raise _bad(f"it is nested deeper than {_DEEPEST}") from None
    except ValueError as error:  # UnicodeError and JSONDecodeError are ones
        raise _bad(str(error) if type(error) is ValueError else "it is not JSON in UTF-8") from None
    if _is_too_deep(value):
        raise _bad(f"it is nested deeper than {_DEEPEST}")
    if not isinstance(value, dict):
        raise _bad("it is not an object")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True


def _bad(why: str) -> ProblemError:
    return ProblemError(400, f"the body cannot be read: {why}. Nothing was done.", code="InvalidError")
