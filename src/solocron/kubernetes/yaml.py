"""YAML for manifests: mappings and lists in blocks, every scalar as JSON, which YAML can read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["dump_all"]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./_-]*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""Texts that YAML reads as something else unless they are quoted."""


def dump_all(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the documents, each after a line `---`."""
    return "".join("---\n" + "".join(f"{line}\n" for line in _block(document)) for document in documents)


def _block(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _entry(f"{_scalar(key)}:", inner)
    elif isinstance(value, list | tuple) and value:
        for inner in value:
            lines = _block(inner)
            yield f"- {next(lines)}"
            yield from (f"  {line}" for line in lines)
    else:
        yield _scalar(value)


def _entry(head: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple) and value:
        yield head
        yield from (f"  {line}" for line in _block(value))
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
