"""A limit for the time in which a client sends the head of a request; uvicorn has none.

Without it a client that sends one letter a minute keeps its connection, and a few hundred of them keep everyone out.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BoundedHeads"]

_HEAD_WITHIN = 5.0


class BoundedHeads(H11Protocol):
    """Closes a connection whose next head is not whole in time, counted from the connect or from the last answer."""

    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._end is None:
            self._end = self.loop.call_later(_HEAD_WITHIN, self.transport.close)

    def _forget(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
