"""How an attempt ended, from what its function returned or raised and whether it was asked to stop."""

from __future__ import annotations

import json
import traceback
from typing import Any

from solocron.dispatch.contract import Elsewhere, NotKept
from solocron.engine.board import Running
from solocron.errors import Cancelled, LeaseLost
from solocron.model.ending import Outcome
from solocron.model.run import Status

__all__ = ["outcome_of"]

RESULT_LIMIT = 64 * 1024
ERROR_LIMIT = 16 * 1024

_SUCCEEDED = Outcome.succeeded()


def outcome_of(running: Running, value: Any, error: BaseException | None) -> Outcome:
    """How an attempt ended whose function returned or raised this; why it was to stop comes first."""
    stop = running.stop
    if stop is not None and stop.kind == "timeout":
        return Outcome.timed_out(stop.reason)
    if error is None:
        return _succeeded(value)
    if stop is not None and (isinstance(error, LeaseLost) or not isinstance(error, Exception)):
        return Outcome.cancelled(stop.reason, again=stop.kind == "shutdown")
    if isinstance(error, Cancelled):
        return Outcome.cancelled(str(error))
    if type(error).__name__ == "CancelledError":
        return Outcome.cancelled("its event loop was closed, or the coroutine cancelled itself", again=True)
    text = str(error) if isinstance(error, Elsewhere) else "".join(traceback.format_exception(error))
    if running.asking:
        text = f"on_retry did not answer, so the run was not repeated:\n{text}"
    return Outcome.failed(text if len(text) <= ERROR_LIMIT else f"[cut]\n{text[-ERROR_LIMIT:]}")


def _succeeded(value: Any) -> Outcome:
    """What a function returns is kept with the run, if it is small JSON."""
    if value is None:
        return _SUCCEEDED
    if isinstance(value, NotKept):
        return Outcome(status=Status.SUCCEEDED, reason=value.reason)
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return Outcome(
            status=Status.SUCCEEDED, reason=f"its result ({type(value).__name__}) is not JSON and was not kept"
        )
    if len(text) > RESULT_LIMIT:
        return Outcome(
            status=Status.SUCCEEDED, reason=f"its result is larger than {RESULT_LIMIT} characters and was not kept"
        )
    return Outcome.succeeded(text)
