"""What the carriers share: checks of options and payloads, and a broker's certain no."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from solocron.dispatch.carrier import Message, NotAccepted
from solocron.errors import InvalidError, MissingExtra

__all__ = ["Probe", "check_options", "keyword_arguments", "missing"]


class Probe:
    """Tells a broker that is away from one whose answer was lost.

    The broker is asked before the first message, and after a trouble: one that cannot be reached has taken nothing.
    """

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask
        self._reached = False

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send one message inside; raises `NotAccepted` if the broker cannot be reached."""
        if not self._reached:
            try:
                self._ask()
            except Exception as error:
                raise NotAccepted(f"no connection to the broker: {error}") from error
        self._reached = False
        yield
        self._reached = True


def check_options(options: Iterable[str], known: Iterable[str], carrier: str) -> None:
    """Refuse `hand_over` options that the carrier does not know."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InvalidError(
            f"hand_over={{{unknown[0]!r}: ...}} is not an option of {carrier}; known are {', '.join(sorted(known))}. "
            "Nothing was started."
        )


def keyword_arguments(message: Message) -> dict[str, Any]:
    """Return the payload of a forwarded message as the keyword arguments of its target."""
    payload = {} if message.payload is None else message.payload
    if not isinstance(payload, Mapping):
        raise InvalidError(
            f"the payload of a forwarded job is the keyword arguments of {message.target}, and {payload!r:.80} is not "
            "a mapping of names. Nothing was sent."
        )
    return dict(payload)


def missing(carrier: str, extra: str) -> MissingExtra:
    """Return the error for a queue whose library is not installed."""
    return MissingExtra(f'{carrier} needs {extra}, which is not installed: pip install "solocron[{extra}]"')
