"""Results as a store can keep them: JSON, bounded in size. Anything else is refused, never converted."""

from __future__ import annotations

import inspect
import json
from typing import Any

from solocron.errors import InvalidError

__all__ = ["LIMIT", "close", "plain_json"]

LIMIT = 64 * 1024
"""Maximum bytes of one result."""


def close(awaitable: Any) -> None:
    """Close a coroutine that will not be awaited, so that no "never awaited" warning appears later, out of context."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()


def plain_json(value: Any, *, whose: str) -> Any:
    """Return the value as it will be read back; `whose` names it in the error."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:  # a string that is not UTF-8 is a ValueError too
        raise InvalidError(
            f"the result of {whose} is not JSON ({error}); it was not saved. Return plain JSON, or its name elsewhere."
        ) from None
    if size > LIMIT:
        raise InvalidError(
            f"the result of {whose} has {size} bytes, more than {LIMIT}; it was not saved. "
            "Keep the data elsewhere and return its name."
        )
    return json.loads(text)
