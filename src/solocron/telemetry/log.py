"""Write events as log lines: one event, one line, a sentence, the facts in `extra`.

While the store is away, every loop of a node fails again and again with the same words. The first line of each cause is
logged; the others are counted, and the count is logged when the store is back.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from typing import Any

from solocron.clock import iso, to_us
from solocron.dispatch.current import current_run
from solocron.events import INSTANTS, NAMES, Event

__all__ = ["LINE", "EventLog", "RunFilter", "log_event"]

log = logging.getLogger("solocron")

LINE = "%s [%s]"
"""Format of a line: the sentence, and the facts that it does not name."""

_LEVELS: Mapping[str, int] = {
    "session renewed": logging.DEBUG,
    "held elsewhere": logging.DEBUG,
    "claimed": logging.DEBUG,
    "slot passed": logging.DEBUG,
    "started": logging.DEBUG,
    "pruned": logging.DEBUG,
    "request accepted": logging.DEBUG,
    "handed over": logging.DEBUG,
    "picked up": logging.DEBUG,
    "message dropped": logging.WARNING,
    "hand-over failed": logging.WARNING,
    "not picked up": logging.WARNING,
    "no handler": logging.WARNING,
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
    "never due": logging.WARNING,
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
_OUTAGE = frozenset({"store error", "renewal failed"})
_BACK = frozenset({"store back", "session renewed", "session begun"})
_WELL = ("succeeded", "cancelled", "handed_over")


class EventLog:
    """The log of events."""

    def __init__(self) -> None:
        self._causes: set[str] = set()
        """What the store failed with since it last answered."""
        self._unlogged = 0

    def wants(self, name: str) -> bool:
        """Return whether an event of this name would be logged, or ends an outage."""
        return name == "finished" or (bool(self._causes) and name in _BACK) or log.isEnabledFor(_level(name))

    def __call__(self, event: Event) -> None:
        """Log one event; a run that did not succeed is an error."""
        if event.name in _OUTAGE and self._is_known(str(event.error)):
            return
        unlogged = 0
        if event.name in _BACK and self._causes:
            unlogged, self._unlogged = self._unlogged, 0
            self._causes = set()
        failed = event.name == "finished" and event.facts.get("outcome") not in _WELL
        in_order = event.name == "message dropped" and event.facts.get("remedy") is None
        level = logging.ERROR if failed else logging.DEBUG if in_order else _level(event.name)
        if log.isEnabledFor(level):
            _write(level, event)
        if unlogged:
            log.warning(LINE, "the store answers again", f"errors_not_logged={unlogged}", extra={
                "event": "store back", "errors_not_logged": unlogged,
            })  # fmt: skip

    def _is_known(self, error: str) -> bool:
        """Count an error of an outage whose cause is logged already. Numbers in it, such as ports, do not matter."""
        cause = re.sub(r"\d+", "#", error)
        if cause not in self._causes:
            self._causes.add(cause)
            return False
        self._unlogged += 1
        return True


log_event = EventLog()
"""One for the process: schedulers of many namespaces share a store, and its outage."""


class RunFilter(logging.Filter):
    """Adds the facts of the present run to every record that is logged inside one: job, run, attempt, fence, node.

    Where the program has tracing, `trace_id` and `span_id` of the current span are added to every record.

    Add it to a handler. It lets every record pass, and changes no attribute that a record has already.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        run = current_run()
        if run is not None and not hasattr(record, "event"):
            for name, value in run.facts.items():
                if not hasattr(record, name):
                    setattr(record, name, value)
        tracing = sys.modules.get("opentelemetry.trace")
        span = None if tracing is None else tracing.get_current_span().get_span_context()
        if span is not None and span.is_valid and not hasattr(record, "trace_id"):
            record.trace_id, record.span_id = f"{span.trace_id:032x}", f"{span.span_id:016x}"
        return True


def _level(name: str) -> int:
    return _LEVELS.get(name, logging.INFO)


def _write(level: int, event: Event) -> None:
    facts = dict(event.facts)
    exception = facts.pop("exception", None)
    extra: dict[str, Any] = {"event": event.name}
    for name, value in facts.items():
        extra[f"{name}_" if name in _RESERVED else name] = (
            iso(to_us(value)) if name in INSTANTS and value is not None else value
        )
    if exception is not None and event.name == "finished":
        if _can_be_written(extra["error"]):
            extra["error"] = _short(extra["error"])  # the traceback goes with `exc_info`
        else:
            exception = None
    if event.name == "registered":
        log.log(level, "registered %s [%s] -> %s", facts["job"], facts["schedule"], facts["place"], extra=extra)
        return
    sentence, named = _sentence(event)
    shown = " ".join(
        f"{name}={_short(value)}"
        for name, value in extra.items()
        if value is not None and name not in ("event", "handler", *named)  # the job says more, and is there
    )
    log.log(level, LINE, sentence, shown, extra=extra, exc_info=exception)


def _sentence(event: Event) -> tuple[str, tuple[str, ...]]:
    """Return the sentence of a line, and the facts that it names, so that they are not said twice."""
    facts = event.facts
    if event.name == "finished":
        why = facts.get("error") or facts.get("reason")
        what = f"run {str(facts['outcome']).replace('_', ' ')}"
        named = ("outcome", "error") if facts.get("error") else ("outcome", "reason")
        return (f"{what}: {_short(why)}" if why else what), named
    if event.name in ("definition kept", "rolled back") and facts.get("stored"):
        adopt = ": see `solocron adopt`" if event.name == "rolled back" else ""
        kept = f"the stored definition (revision {facts['stored']}) is kept"
        return f"{kept}; ours ({facts['ours'] or 'none'}) is not used{adopt}", ()
    if event.name in ("alarm", "alarm cleared"):
        return facts["text"], ("text", "kind", "count", "alarms", "again", "id")
    if event.name == "message dropped":
        remedy = f"; {facts['remedy']}" if facts.get("remedy") else ""
        return f"a message was dropped: {facts['reason']}{remedy}", ("reason", "remedy")
    if event.name == "event loop blocked":
        by, tense = event.job or "code that is not a job's", "has been" if event.still else "was"
        return f"the event loop {tense} blocked for {event.blocked_s:.1f} s by {by}", ("job", "blocked_s", "still")
    return NAMES.get(event.name, event.name), ()


def _can_be_written(text: str) -> bool:
    """Return whether a handler can write it: a traceback that is no UTF-8 would cost the whole line."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(value: Any) -> str:
    """Return a value as one short line, with control characters escaped; of runs that were taken over, their ids."""
    if isinstance(value, tuple):
        value = ",".join(str(one["run"]) if isinstance(one, dict) and "run" in one else str(one) for one in value)
    line = str(value).strip().rpartition("\n")[2]
    return line.encode("unicode_escape").decode()[:300] if not line.isprintable() else line[:300]
