"""A connection of `ChaosProxy`: two streams, each a queue of what is in transit."""

from __future__ import annotations

import socket
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["END", "LOSS", "Direction", "Faults", "ProxiedConnection", "Stream", "Traffic"]

Direction = Literal["requests", "replies"]
"""`requests` flow from the client to the target, `replies` from the target to the client."""

END = b""
"""The source will send no more."""
LOSS = None
"""The connection is gone without an orderly close."""

WINDOW = 1_048_576
"""Bytes held for one side at most; beyond that the other side is not read, as with a full TCP window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Traffic so far; `ChaosProxy.wait_for` waits until it is as a test needs it."""

    accepted: int = 0
    """Connections that clients have made."""
    open: int = 0
    """Of those, the ones that are not over."""
    requests: int = 0
    """Bytes delivered to the target."""
    replies: int = 0
    """Bytes delivered to clients."""
    held: int = 0
    """Bytes that wait to be delivered."""
    swallowed: int = 0
    """Bytes that vanished in `blackhole` or `drop_replies`."""
    cut: int = 0
    """Connections that were reset by `cut`, `cut_after` or `heal`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The faults of the network now."""

    delay: float = 0.0
    blackhole: bool = False
    drop_replies: bool = False
    cut_after: tuple[Direction, int] | None = None

    def swallow(self, direction: Direction) -> bool:
        return self.blackhole or (self.drop_replies and direction == "replies")


@dataclass(slots=True, eq=False)
class Stream:
    """One direction of a connection: what is in transit, each with the time it came."""

    direction: Direction
    source: socket.socket
    sink: socket.socket
    chunks: deque[tuple[float, bytes | None]] = field(default_factory=deque)
    held: int = 0
    ended: bool = False
    """Nothing more will come."""
    blocked: bool = False
    """The sink takes no more for now."""
    done: bool = False
    """The sink has received the end."""

    def push(self, data: bytes | None) -> None:
        self.chunks.append((time.monotonic(), data))
        self.held += len(data or END)
        self.ended = self.ended or not data

    def shift(self, count: int) -> None:
        """Remove the first bytes, which have left; the rest of their chunk stays first."""
        came, data = self.chunks.popleft()
        self.held -= count
        if data and count < len(data):
            self.chunks.appendleft((came, data[count:]))

    def abandon(self) -> None:
        """Give up the rest: the sink is gone, and nothing can be delivered any more."""
        self.chunks.clear()
        self.held = 0
        self.ended = True


@dataclass(slots=True, eq=False)
class ProxiedConnection:
    """A client's connection and the one that was made to the target for it."""

    client: socket.socket
    target: socket.socket
    requests: Stream
    replies: Stream
    connected: bool = False
    """The attempt to reach the target is over, one way or the other."""
    holed: bool = False
    """Something has vanished: it can only be reset."""
    dropped: bool = False

    @property
    def streams(self) -> tuple[Stream, Stream]:
        return self.requests, self.replies

    def wants(self, stream: Stream) -> bool:
        """Return whether the source of this stream is to be read."""
        reachable = self.connected or stream.source is not self.target
        return reachable and not stream.ended and stream.held < WINDOW
