"""Turns events into log lines: one event, one line, a fixed sentence, the facts in `extra`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from solocron.clock import iso
from solocron.events import NAMES, Event

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
# Names that a log record keeps for itself.
_RESERVED = frozenset({"name", "message", "args", "process", "exc_info"})


def is_logged(name: str) -> bool:
    """Whether an event of this name may make a line, as logging is set up at the moment."""
    return name == "finished" or log.isEnabledFor(_LEVELS.get(name, logging.INFO))


def log_event(event: Event) -> None:
    """Write one event; what a run raised is an error, what it returned is not worth more than a line."""
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
            iso(value) if name in ("slot", "due_at", "since") and value else value
        )
    if event.name == "registered":
        log.log(level, "registered %s [%s] -> %s", facts["job"], facts["schedule"], facts["place"], extra=extra)
        return
    shown = " ".join(f"{name}={_short(extra[name])}" for name in extra if name != "event" and extra[name] is not None)
    log.log(level, "%s [%s]", NAMES.get(event.name, event.name), shown, extra=extra, exc_info=exception)


def _short(value: Any) -> str:
    """One line, whatever it was: control characters escaped, the end of a long text cut."""
    text = str(value).strip()
    if "\n" in text:
        text = text.rsplit("\n", 1)[-1]
    return text.encode("unicode_escape").decode()[:300] if not text.isprintable() else text[:300]
