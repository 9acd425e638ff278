"""The stored result of a body: its return value, if that is small JSON, or the end of its traceback."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass
from typing import Any

__all__ = ["NotKept", "error_text", "result_text"]

RESULT_LIMIT = 64 * 1024
ERROR_LIMIT = 16 * 1024


@dataclass(frozen=True, slots=True)
class NotKept:
    """Reason why the value that a body returned is not kept."""

    reason: str


def result_text(value: Any) -> str | NotKept:
    """Return the JSON of the value that a body returned."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return NotKept(f"its result ({type(value).__name__}) is not JSON and was not kept")
    if len(text) > RESULT_LIMIT:
        return NotKept(f"its result is larger than {RESULT_LIMIT} characters and was not kept")
    return text


def error_text(text: str | BaseException) -> str:
    """Return a traceback, or the string that stands for one; a long one is cut to its end."""
    if isinstance(text, BaseException):
        text = "".join(traceback.format_exception(text))
    return text if len(text) <= ERROR_LIMIT else f"[cut]\n{text[-ERROR_LIMIT:]}"
