"""Named SQL from files. Code refers to a statement by its name; every statement has a sentence that says what it is.

    -- due_jobs --  Due documents this node may run, locked; the others' locked ones are passed over.
    SELECT ... FROM {jobs} WHERE namespace = :namespace ...

`{jobs}` and the other words in braces are filled in by the dialect: table names, clocks, `{in:names}` for a list of
strings, `{rows:job_moved}` for the rows of a batch, `{by:runs_job}` for an index that a dialect must be told to use.
`{lock}` ends a selection that is read, or read and locked: a dialect that has a word for locking gets both, the second
as `..._locked`; with `{lock:skip_locked}` it passes over locked rows. Values are never written into a statement:
`:name` is a bound parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from solocron.packaged import packaged_text

__all__ = ["TABLES", "Macro", "Statement", "load"]

TABLES = ("meta", "jobs", "documents", "holds", "runs", "signals")

_HEAD = re.compile(r"^-- (\w+) -- +(.+)$", re.MULTILINE)
_WORD = re.compile(r"\{([a-z_]+)(?::([a-z_]+))?\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


Macro = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as it goes to the driver."""

    name: str
    about: str
    sql: str


def load(
    files: tuple[str, ...], words: dict[str, str], macros: Mapping[str, Macro], *, driver: str = "named"
) -> dict[str, Statement]:
    """Return every statement of these files, rendered; a later file replaces a statement of an earlier one.

    Parameters are written as the driver likes them: `named` or `pyformat`.
    """
    found: dict[str, Statement] = {}
    for file in files:
        for name, about, sql in _parse(file):
            plain = words | {"lock": ""}
            found[name] = Statement(name, about, _render(sql, plain, macros, driver).rstrip())
            if "lock" in words and "{lock" in sql:
                locked = f"{name}_locked"
                found[locked] = Statement(locked, f"{about} Locked.", _render(sql, words, macros, driver))
    return found


def _render(sql: str, words: Mapping[str, str], macros: Mapping[str, Macro], driver: str) -> str:
    def word(match: re.Match[str]) -> str:
        name, argument = match.groups()
        if name == "lock" and argument:
            return words[name] and f"{words[name]} {argument.replace('_', ' ').upper()}"
        return macros[name](argument) if argument else words[name]

    if driver == "pyformat":
        sql = sql.replace("%", "%%")
    sql = _WORD.sub(word, sql)
    return _PARAMETER.sub(r"%(\1)s", sql) if driver == "pyformat" else sql


@cache
def _parse(file: str) -> tuple[tuple[str, str, str], ...]:
    text = packaged_text("solocron.stores.sql", "statements", f"{file}.sql")
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return tuple(
        (head[1], head[2], text[head.end() : end].strip().rstrip(";")) for head, end in zip(heads, ends, strict=True)
    )
