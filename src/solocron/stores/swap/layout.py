"""Keys and values of a namespace: documents, the index keys that follow from their headers, records of the log.

    d/<kind>/<name>                              header, fixed text, state text
    f/<kind>/<name>                              a long fixed text; the header has its digest
    due/<pool>/<ready>/<name>                    handler; of a job that is due some time
    held/<kind>/<session>/<name>                 of a document that names the session as a holder
    live/<session>  dead/<session>  swept/<ended>/<session>
    mark/<bit>/<name>                            of a job that bears the mark
    aside/<kind>/<name>                          until, times and reason
    run/<run>·<attempt>                          the record; its creation refuses a second one
    st/<status>/<recorded>/<run>·<attempt>       count
    log/<job>/<recorded>/<run>·<attempt>         status and count
    parcel/<token>/<n>                           records that are still to be written, see `portions.py`
    notify                                       the client that notified, and a word that is new each time
    layout                                       the number of this layout

A part that may hold a slash and is not the last one is percent-encoded. Instants have 16 digits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import Blocked, Doc, Mark
from solocron.stores.documents import holders_of, marks_of
from solocron.stores.record_text import record_from, record_text

__all__ = [
    *("DUE", "NOTIFY", "LAYOUT", "NO_HEADER", "Header", "Stamp", "aside_key", "aside_value", "blocked_in", "changed"),
    *("derived", "digest_of", "document_key", "due_of", "fixed_key", "header_of", "instant", "is_derived", "live_key"),
    *("log_keys", "packed", "pool_prefix", "quoted", "record_at", "run_key", "run_of", "unpacked"),
]

DUE, NOTIFY, LAYOUT = "due/", "notify", "layout"
_PAIR = "\x01"
"""Sorts before every character of a name, so that runs and attempts sort as pairs."""
_LAST = 10**16 - 1
_APART = 1_024
"""Characters from which on a fixed text has a key of its own: else a claim would write a payload of 64 kB anew."""


def quoted(text: str) -> str:
    """Return a part of a key without slashes."""
    return quote(text, safe="")


def instant(us: int) -> str:
    """Return an instant such that the order of strings is that of time."""
    return f"{min(max(us, 0), _LAST):016}"


def document_key(kind: Kind, name: str) -> str:
    return f"d/{kind}/{name}"


def fixed_key(kind: Kind, name: str) -> str:
    return f"f/{kind}/{name}"


def live_key(session: str) -> str:
    return f"live/{session}"


def aside_key(kind: Kind, name: str) -> str:
    return f"aside/{kind}/{name}"


def pool_prefix(pool: str) -> str:
    return f"{DUE}{quoted(pool)}/"


def due_of(key: str) -> tuple[str, int, str]:
    """Return pool, instant and name of an index key of what is due."""
    _, pool, ready, name = key.split("/", 3)
    return unquote(pool), int(ready), name


# --- documents


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Everything of a document that selections and index keys need, so that a broken text hides nothing."""

    due: int | None = None
    pool: str = ""
    handler: str = ""
    held: tuple[str, ...] = ()
    life: str = ""
    ended: int = 0
    marks: int = 0
    aside: int = 0
    """Until when it is set aside; 0: it is not."""
    time: int = 0
    """When it was written, by the time that its change was given."""
    token: str = ""
    """The commit that wrote it."""
    digest: str = ""
    """Digest of the fixed text, if that has a key of its own."""
    parcel: str = ""
    """Parcels with records of this document, unless they are unpacked already."""

    @classmethod
    def of(cls, doc: Doc, fixed: str) -> Header:
        digest = digest_of(fixed) if len(fixed) > _APART else ""
        held = tuple(sorted(holders_of(doc)))
        if isinstance(doc, Job):
            policy = doc.definition
            return cls(
                due=doc.due_at, pool=policy.pool, handler=policy.handler, held=held, marks=marks_of(doc), digest=digest
            )
        if isinstance(doc, Session):
            return cls(life=doc.state, ended=doc.ended_at or 0, digest=digest)
        return cls(held=held, digest=digest)

    @property
    def ready(self) -> int | None:
        """When a job can be selected: once it is due, and let in again if it is set aside."""
        return None if self.due is None else max(self.due, self.aside)

    def index(self, kind: Kind, name: str) -> dict[str, str]:
        """Return the index keys of the document and their values."""
        keys = {f"held/{kind}/{quoted(session)}/{name}": "" for session in self.held}
        if self.due is not None:
            keys[f"{pool_prefix(self.pool)}{instant(max(self.due, self.aside))}/{name}"] = self.handler
        if self.life:
            swept = self.life == Life.SWEPT
            keys[f"{self.life}/{instant(self.ended)}/{name}" if swept else f"{self.life}/{name}"] = ""
        if self.marks:
            keys |= {f"mark/{mark.value}/{name}": "" for mark in Mark if self.marks & mark}
        return keys


NO_HEADER = Header()
_SHORT = {
    "due": "d", "pool": "p", "handler": "h", "held": "s", "life": "l", "ended": "e", "marks": "m", "aside": "a",
    "time": "t", "token": "c", "digest": "f", "parcel": "r",
}  # fmt: skip
_LONG = {short: name for name, short in _SHORT.items()}


class Stamp(NamedTuple):
    """The mark of a stored document, and its header; `header` is None where the value is broken."""

    mark: Hashable
    header: Header | None


def packed(header: Header, fixed: str, state: str) -> str:
    """Return the value of a document."""
    words: dict[str, Any] = {}
    for name, short in _SHORT.items():
        value = getattr(header, name)
        if value or (name == "due" and value is not None):
            words[short] = value
    kept = "" if header.digest else fixed
    words["n"] = len(kept)
    return f"{json.dumps(words, ensure_ascii=False, separators=(',', ':'))}\n{kept}{state}"


def unpacked(value: str) -> tuple[Header | None, str, str]:
    """Return header, fixed text and state text of a value; without a header where it is broken."""
    try:
        first, rest = value.split("\n", 1)
        words = json.loads(first)
        length = words.pop("n")
        values = {_LONG[short]: value for short, value in words.items() if short in _LONG}
        if "held" in values:
            values["held"] = tuple(values["held"])
        return Header(**values), rest[:length], rest[length:]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, "", value


def header_of(value: str) -> Header | None:
    return unpacked(value)[0]


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


# --- documents that are set aside


def aside_value(aside: Blocked) -> str:
    reason = aside.reason.encode(errors="replace").decode()
    return json.dumps([aside.until, aside.times, reason], ensure_ascii=False, separators=(",", ":"))


def blocked_in(key: str, value: str) -> Blocked:
    """Return the document that an `aside/` key is about."""
    _, kind, name = key.split("/", 2)
    until, times, reason = json.loads(value)
    return Blocked(Kind(kind), name, until, reason, times)


# --- the log


def run_key(run: str, attempt: int) -> str:
    return f"run/{run}{_PAIR}{attempt:08}"


def run_of(member: str) -> tuple[str, int]:
    """Return run and attempt of the last part of a key of the log."""
    run, _, attempt = member.rpartition(_PAIR)
    return run, int(attempt)


def log_keys(record: Record) -> dict[str, str]:
    """Return the keys of a record and their values, that of the record itself first."""
    member = f"{record.run}{_PAIR}{record.attempt:08}"
    at = instant(record.recorded_at)
    return {
        f"run/{member}": record_text(record),
        f"st/{record.status}/{at}/{member}": str(record.count),
        f"log/{quoted(record.job)}/{at}/{member}": f"{record.status} {record.count}",
    }


def record_at(key: str, value: str) -> Record:
    """Return the record of a `run/` key."""
    return record_from(*run_of(key.removeprefix("run/")), value)


def changed(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """Return the writes that turn one set of index keys into another."""
    writes: dict[str, str | None] = {key: None for key in old if key not in new}
    writes |= {key: value for key, value in new.items() if old.get(key) != value}
    return writes


# --- index keys that a mirror makes for itself

_DERIVED = (DUE, "held/", "dead/", "swept/", "mark/", "st/", "log/")


def is_derived(key: str) -> bool:
    """Return whether a key follows from a document or a record, and is checked by no commit."""
    return key.startswith(_DERIVED)


def derived(key: str, value: str) -> dict[str, str]:
    """Return the index keys that follow from a key and its value; none where the value is broken."""
    if key.startswith("d/"):
        _, kind, name = key.split("/", 2)
        header = header_of(value)
        keys = {} if header is None else header.index(Kind(kind), name)
    elif key.startswith("run/"):
        try:
            keys = log_keys(record_at(key, value))
        except (ValueError, TypeError, KeyError):
            return {}
    else:
        return {}
    return {key: value for key, value in keys.items() if is_derived(key)}
