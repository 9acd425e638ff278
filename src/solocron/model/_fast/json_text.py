"""The one JSON reader and writer of documents, rows and records: the standard library's, without its detours.

`json.dumps` with any option makes an encoder for each call, and the encoder makes its accelerator anew: for texts of
some hundred bytes that costs more than the writing. `json.loads` looks for white space and byte order marks first. Here
the accelerators are made once. That of the writer is no documented interface, so it is compared with the documented one
at import, which is used where they differ.

No writer looks for circular references: what is written was read from JSON or is made of frozen values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from json import encoder as _json
from typing import Any

__all__ = ["read", "write", "write_ascii", "write_rows", "write_sorted"]

_SAMPLE = {"b": ['\u2602"', 1, None, True, 1.5, {}], "a": -1}


def _writer(*, ascii_only: bool = False, sort_keys: bool = False) -> Callable[[Any], str]:
    """Return a function that writes without white space and refuses NaN; slower where there is no accelerator."""
    plain = json.JSONEncoder(
        separators=(",", ":"), allow_nan=False, ensure_ascii=ascii_only, check_circular=False, sort_keys=sort_keys
    )
    quoted = _json.encode_basestring_ascii if ascii_only else _json.encode_basestring
    try:
        parts = _json.c_make_encoder(  # type: ignore[attr-defined]
            None, plain.default, quoted, None, ":", ",", sort_keys, False, False
        )
        if "".join(parts(_SAMPLE, 0)) == plain.encode(_SAMPLE):
            return lambda value: "".join(parts(value, 0))
    except TypeError:  # an interpreter without the accelerator, or with another one
        pass
    return plain.encode


write = _writer()
"""Write a value. Text that is not ASCII stays readable."""
write_sorted = _writer(sort_keys=True)
"""Write a value so that equal values are equal texts."""
write_ascii = _writer(ascii_only=True)
"""Write a value for a connection of any character set."""

_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def read(text: str) -> Any:
    """Read a text as `write` leaves it; one with white space around it takes the long way."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        return json.loads(text)  # which says what is wrong with it
    return value if end == len(text) else json.loads(text)


def write_rows(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str:
    """Write rows as one array of objects, in ASCII; a column that is null in all of them is left out.

    Column by column, and put together by one template: half the price of a writer that meets every value by itself.
    """
    kept, columns = [], []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        types = set(map(type, values))
        if types == {type(None)}:
            continue
        kept.append(name)
        if types == {int}:
            columns.append(values)
        elif all(issubclass(one, str) for one in types):
            columns.append(tuple(map(_json.encode_basestring_ascii, values)))
        else:
            columns.append(tuple(map(write_ascii, values)))
    template = "{" + ",".join([f'"{name}":%s' for name in kept]) + "}"
    return "[" + ",".join(map(template.__mod__, zip(*columns, strict=True))) + "]"
