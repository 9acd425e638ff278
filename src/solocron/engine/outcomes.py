"""How an attempt ended, from what its function returned or raised and whether it was asked to stop."""

from __future__ import annotations

from typing import Any

from solocron.dispatch.contract import Elsewhere
from solocron.engine.attempts import Running
from solocron.errors import Cancelled, RunStopped, TimedOut
from solocron.jobs.results import NotKept, error_text, result_text
from solocron.jobs.unfinished import unfinished
from solocron.model.documents.run import Status
from solocron.model.transitions.finishing import Outcome

__all__ = ["outcome_of"]

_SUCCEEDED = Outcome.succeeded()


def outcome_of(running: Running, value: Any, error: BaseException | None) -> Outcome:
    """How an attempt ended whose function returned or raised this; why it was to stop comes first."""
    try:
        return _outcome_of(running, value, error)
    except (Exception, RunStopped) as trouble:  # noqa: BLE001 - no memory for a traceback, a result that raises when it is looked at
        return _without_words(error, type(trouble).__name__)


def _outcome_of(running: Running, value: Any, error: BaseException | None) -> Outcome:
    left = None if value is None else unfinished(value)
    stop = running.stop
    if stop is not None and stop.kind == "timeout":
        return Outcome.timed_out(stop.reason)
    if error is None:
        return _succeeded(value) if left is None else Outcome.failed(left)
    if stop is not None and not isinstance(error, Exception):
        return Outcome.cancelled(stop.reason, again=stop.kind == "shutdown")
    if isinstance(error, Cancelled):
        return Outcome.cancelled(str(error))
    if isinstance(error, TimedOut):
        return Outcome.timed_out(str(error))
    if type(error).__name__ == "CancelledError":
        return Outcome.cancelled("its event loop was closed, or the coroutine cancelled itself", again=True)
    text = error_text(str(error) if isinstance(error, Elsewhere) else error)
    if running.asking:
        text = f"on_retry did not answer, so the run was not repeated:\n{text}"
    return Outcome.failed(text)


def _without_words(error: BaseException | None, trouble: str) -> Outcome:
    if error is None:
        return Outcome(status=Status.SUCCEEDED, reason=f"its result could not be written down ({trouble})")
    return Outcome.failed(f"{type(error).__name__}; what it says could not be written down ({trouble})")


def _succeeded(value: Any) -> Outcome:
    """What a function returns is kept with the run, if it is small JSON."""
    if value is None:
        return _SUCCEEDED
    text = value if isinstance(value, NotKept) else result_text(value)
    if isinstance(text, NotKept):
        return Outcome(status=Status.SUCCEEDED, reason=text.reason)
    return Outcome.succeeded(text)
