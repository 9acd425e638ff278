"""Named SQL from files. Code refers to a statement by its name; every statement has a sentence that says what it is.

    -- due_jobs --  Due documents this node may run, locked; the others' locked ones are passed over.
    SELECT ... FROM {jobs} WHERE namespace = :namespace ...

`{jobs}` and the other words in braces are filled in by the dialect: table names, locking clauses, `{in:names}` for a
list. Values are never written into a statement: `:name` is a bound parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["TABLES", "Statement", "load", "read_file", "render"]

TABLES = ("meta", "jobs", "documents", "holds", "runs", "signals")

_HEAD = re.compile(r"^-- (\w+) -- +(.+)$", re.MULTILINE)
_WORD = re.compile(r"\{([a-z_]+)(?::([a-z_]+))?\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as it goes to the driver."""

    name: str
    about: str
    sql: str


def load(
    files: tuple[str, ...], words: Mapping[str, str], *, among: Callable[[str], str], driver: str
) -> dict[str, Statement]:
    """Every statement of these files, rendered; a later file replaces what an earlier one says under the same name."""
    found: dict[str, Statement] = {}
    for file in files:
        for name, about, sql in _parse(file):
            found[name] = Statement(name, about, render(sql, words, among=among, driver=driver))
    return found


def render(sql: str, words: Mapping[str, str], *, among: Callable[[str], str], driver: str) -> str:
    """Fill the words in, and write parameters as the driver likes them (`named` or `pyformat`)."""

    def word(match: re.Match[str]) -> str:
        name, argument = match.groups()
        return among(argument) if name == "in" else words[name]

    if driver == "pyformat":
        sql = sql.replace("%", "%%")
    sql = _WORD.sub(word, sql)
    return _PARAMETER.sub(r"%(\1)s", sql) if driver == "pyformat" else sql


def read_file(path: str) -> str:
    """The text of a file that is packaged beside this one."""
    return (resources.files(__package__) / path).read_text(encoding="utf-8")


@cache
def _parse(file: str) -> tuple[tuple[str, str, str], ...]:
    text = read_file(f"statements/{file}.sql")
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return tuple(
        (head[1], head[2], text[head.end() : end].strip().rstrip(";")) for head, end in zip(heads, ends, strict=True)
    )
