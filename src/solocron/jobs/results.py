"""What is kept of how a body ended: what it returned, if that is small JSON, and the end of what it raised."""

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
    """A body returned something that is not kept, and why."""

    reason: str


def result_text(value: Any) -> str | NotKept:
    """The JSON of what a body returned."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return NotKept(f"its result ({type(value).__name__}) is not JSON and was not kept")
    if len(text) > RESULT_LIMIT:
        return NotKept(f"its result is larger than {RESULT_LIMIT} characters and was not kept")
    return text


def error_text(text: str | BaseException) -> str:
    """A traceback, or what stands for one; of a long one the end."""
    if isinstance(text, BaseException):
        text = "".join(traceback.format_exception(text))
    return text if len(text) <= ERROR_LIMIT else f"[cut]\n{text[-ERROR_LIMIT:]}"
