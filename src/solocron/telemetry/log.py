"""Write events as log lines: one event, one line, a fixed sentence, the facts in `extra`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from solocron.clock import iso, to_us
from solocron.events import INSTANTS, NAMES, Event

__all__ = ["is_logged", "log_event"]

log = logging.getLogger("solocron")

_LEVELS: Mapping[str, int] = {
    "session renewed": logging.DEBUG,
    "held elsewhere": logging.DEBUG,
    "claimed": logging.DEBUG,
    "slot passed": logging.DEBUG,
    "started": logging.DEBUG,
    "pruned": logging.DEBUG,
    "request accepted": logging.DEBUG,
    "renewal failed": logging.WARNING,
    "session lost": logging.WARNING,
    "session buried": logging.WARNING,
    "taken over": logging.WARNING,
    "refused": logging.WARNING,
    "event loop blocked": logging.WARNING,
    "recorded twice": logging.ERROR,
    "paused": logging.ERROR,
    "request dropped": logging.WARNING,
    "another application": logging.WARNING,
    "application changed": logging.WARNING,
    "rolled back": logging.WARNING,
    "stuck": logging.ERROR,
    "job blocked": logging.ERROR,
    "alarm": logging.ERROR,
    "alarm cleared": logging.WARNING,
    "not delivered": logging.WARNING,
    "store went back": logging.ERROR,
    "namespace closed": logging.ERROR,
    "namespace open": logging.WARNING,
    "put back": logging.WARNING,
    "ended anew": logging.WARNING,
    "store error": logging.ERROR,
    "loop error": logging.ERROR,
}
# Attributes of a log record itself.
_RESERVED = frozenset({"name", "message", "args", "process", "exc_info"})


def is_logged(name: str) -> bool:
    """Return whether an event of this name would be logged with the present configuration."""
    return name == "finished" or log.isEnabledFor(_LEVELS.get(name, logging.INFO))


def log_event(event: Event) -> None:
    """Log one event; a run that did not succeed is an error."""
    level = _LEVELS.get(event.name, logging.INFO)
    if event.name == "finished" and event.facts.get("outcome") not in ("succeeded", "cancelled"):
        level = logging.ERROR
    if not log.isEnabledFor(level):
        return
    facts = dict(event.facts)
    exception = facts.pop("exception", None)
    extra: dict[str, Any] = {"event": event.name}
    for name, value in facts.items():
        extra[f"{name}_" if name in _RESERVED else name] = (
            iso(to_us(value)) if name in INSTANTS and value is not None else value
        )
    if event.name == "registered":
        log.log(level, "registered %s [%s] -> %s", facts["job"], facts["schedule"], facts["place"], extra=extra)
        return
    shown = " ".join(f"{name}={_short(extra[name])}" for name in extra if name != "event" and extra[name] is not None)
    log.log(level, "%s [%s]", _sentence(event), shown, extra=extra, exc_info=exception)


def _sentence(event: Event) -> str:
    """Return the sentence of a line: the event's own, or one with the facts that a reader looks for first."""
    stored = event.facts.get("stored")
    if event.name in ("definition kept", "rolled back") and stored:
        adopt = ": see `solocron adopt`" if event.name == "rolled back" else ""
        return f"the stored definition (revision {stored}) is kept; ours ({event.ours or 'none'}) is not used{adopt}"
    if event.name == "event loop blocked":
        by, tense = event.job or "code that is not a job's", "has been" if event.still else "was"
        return f"the event loop {tense} blocked for {event.blocked_s:.1f} s by {by}"
    return NAMES.get(event.name, event.name)


def _short(value: Any) -> str:
    """Return a value as one short line, with control characters escaped."""
    line = str(value).strip().rpartition("\n")[2]
    return line.encode("unicode_escape").decode()[:300] if not line.isprintable() else line[:300]
