"""Formatters of log lines: one event is one line, even if a job logs line breaks."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from solocron.printable import clean
from solocron.telemetry.log import LINE, RunFilter

__all__ = ["JsonFormatter", "TextFormatter", "handler_for", "logging_to_stderr"]

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes of every record; the others are the facts of the event."""


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


def _sentence(record: logging.LogRecord) -> str:
    """Return the message without the facts of an event, which JSON has as fields."""
    if record.msg == LINE and isinstance(record.args, tuple):
        return str(record.args[0])
    return record.getMessage()


def _facts(record: logging.LogRecord) -> str:
    """Return the run that a line of the application belongs to; the lines of the node name it themselves."""
    run, attempt = getattr(record, "run", None), getattr(record, "attempt", None)
    return "" if run is None or hasattr(record, "event") else f" [run={run} attempt={attempt}]"


class TextFormatter(logging.Formatter):
    """Time, level, sentence. Lines of a traceback are indented, so that none can pass for an event."""

    def format(self, record: logging.LogRecord) -> str:
        name = "" if record.name == "solocron" else f"{record.name}: "
        lines = [f"{_moment(record)} {record.levelname:<7} {name}{clean(record.getMessage())}{clean(_facts(record))}"]
        if record.exc_info:
            lines += [f"    {clean(line)}" for line in self.formatException(record.exc_info).splitlines()]
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, message and the facts under their own names."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _sentence(record),
        }
        facts |= {name: value for name, value in vars(record).items() if name not in _OWN and name not in facts}
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        return json.dumps(facts, default=str)


def handler_for(form: str) -> logging.Handler:
    """Return a handler that writes to stderr in a form, with the run on every line that is logged inside one."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(RunFilter())
    return handler


@contextmanager
def logging_to_stderr(form: str, level: str) -> Iterator[None]:
    """Log everything from `level` up to stderr while the body runs, from Solocron and from the jobs."""
    handler = handler_for(form)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
