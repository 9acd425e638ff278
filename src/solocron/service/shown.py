"""Show values with care: results and payloads only where they are asked for, secrets never, long strings cut."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from solocron.views import JobView, RunView

__all__ = ["cut", "redacted", "shown_job", "shown_run"]

ShownRun = TypeVar("ShownRun", bound=RunView)

_MASK = "***"
_SECRET = re.compile(r"(?i)password|passwd|token|secret|authorization|cookie|credential|(^|[_.\- ])key$|^key$|apikey$")
_ERROR = 16 * 1024
_OUTPUT = 64 * 1024
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31}://[^\s:/@]*):[^\s/@]+@")


def redacted(value: Any) -> Any:
    """Return a JSON value whose entries with a name like `password` or `token` are masked."""
    if isinstance(value, Mapping):
        return {
            str(key): _MASK if _SECRET.search(str(key)) and value[key] is not None else redacted(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return scrubbed(value) if isinstance(value, str) else value


def scrubbed(text: str) -> str:
    """Return a text without the passwords of URLs in it, such as a driver puts into its errors."""
    return _URL.sub(rf"\1:{_MASK}@", text)


def scrubbed_json(value: Any) -> Any:
    """Return a JSON value whose texts, notes and reasons among them, are without the passwords of URLs."""
    if isinstance(value, str):
        return scrubbed(value) if "://" in value else value
    if isinstance(value, dict):
        return {key: scrubbed_json(item) for key, item in value.items()}
    return [scrubbed_json(item) for item in value] if isinstance(value, list) else value


def cut(text: str | None, most: int) -> str | None:
    """Return a text of at most `most` characters; one that is longer ends with a mark."""
    if text is None or len(text) <= most:
        return text
    return f"{text[:most]}\n... {len(text) - most} more characters"


def shown_run(view: ShownRun, *, values: bool = False) -> ShownRun:
    """Return a run as it may be shown: its result only with `values`, its output never (it has a route of its own)."""
    return replace(
        view,
        error=cut(None if view.error is None else scrubbed(view.error), _ERROR),
        result=redacted(view.result) if values else None,
        progress=redacted(view.progress),
        output=None,
    )


def shown_output(view: RunView) -> str:
    """Return what a process printed, without the codes that colour a terminal."""
    plain = re.sub(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)", "", view.output or "")
    return cut(scrubbed(plain), _OUTPUT) or ""


def shown_job(view: JobView, *, values: bool = False) -> JobView:
    """Return a job as it may be shown: its payload only with `values`."""
    return replace(
        view,
        payload=redacted(view.payload) if values else None,
        last_error=cut(None if view.last_error is None else scrubbed(view.last_error), _ERROR),
        running=tuple(shown_run(run) for run in view.running),
    )
