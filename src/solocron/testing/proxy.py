"""A TCP proxy that does to connections what networks do, at the moment a test says so.

    with ChaosProxy.for_url(url) as proxy:
        store = open_store(proxy.through(url))
        proxy.cut_after(0, "replies")       # the commit arrives, its reply does not
        ...
        proxy.heal()

A fault holds from the return of the call that set it until `heal`; several add up. A stream is never resumed
with a hole in it: a connection that has lost bytes is reset when the proxy heals, as by a network that forgot
it. One daemon thread does all the work and is gone when `close` returns.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from solocron.testing._relay import Relay
from solocron.testing._wire import Direction, Traffic

__all__ = ["ChaosProxy", "Direction", "Traffic"]


class ChaosProxy:
    """Forwards a free loopback port to a target. Every method may be called from any thread."""

    host = "127.0.0.1"

    def __init__(self, host: str, port: int) -> None:
        self._relay = Relay(host, port)
        self.port = self._relay.port
        self._thread = threading.Thread(target=self._relay.run, name=f"chaos-proxy-{self.port}", daemon=True)
        self._thread.start()

    @classmethod
    def for_url(cls, url: str) -> Self:
        """Return a proxy to the server that a URL names by host and port, or by its option `endpoint`."""
        parts = urlsplit(_endpoint(url) or url)
        if parts.hostname is None or parts.port is None:
            raise ValueError("a proxy needs a URL with a host and a port")  # not shown: it may hold a password
        return cls(parts.hostname, parts.port)

    def through(self, url: str) -> str:
        """Return the same URL, by way of this proxy."""
        endpoint = _endpoint(url)
        if endpoint:
            return url.replace(f"endpoint={endpoint}", f"endpoint={self.through(endpoint)}")
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}{self.host}:{self.port}").geturl()

    # Faults.

    def delay(self, seconds: float) -> None:
        """Deliver everything this much later, in both directions; 0 delivers at once."""
        if seconds < 0:
            raise ValueError(f"a delay of {seconds} s: nothing can arrive before it is sent")
        self._relay.change(lambda faults: replace(faults, delay=seconds))

    def cut(self) -> None:
        """Reset every connection now; new ones are taken as before."""
        self._relay.order(self._relay.cut)

    def redirect(self, port: int, host: str = "127.0.0.1") -> None:
        """Forward to another target from now on, as a virtual address does in a failover; reset every connection."""
        self._relay.order(lambda: self._relay.redirect(host, port))

    def refuse(self) -> None:
        """Refuse new connections; those that exist continue."""
        self._relay.order(self._relay.unlisten)

    def accept(self) -> None:
        """Take new connections again."""
        self._relay.order(self._relay.listen)

    def blackhole(self) -> None:
        """Take every byte and deliver none, nor the end or the loss of a connection: both sides see silence."""
        self._relay.change(lambda faults: replace(faults, blackhole=True))

    def drop_replies(self) -> None:
        """Deliver requests, and let every reply vanish, also the end or the loss of the target."""
        self._relay.change(lambda faults: replace(faults, drop_replies=True))

    def cut_after(self, n_bytes: int, direction: Direction) -> None:
        """Deliver so many more bytes in this direction, then reset the connection that brings the next one.

        They are counted over all connections. It happens once; a second call takes the place of the first.
        """
        if n_bytes < 0:
            raise ValueError(f"cut after {n_bytes} bytes: the number cannot be negative")
        self._relay.change(lambda faults: replace(faults, cut_after=(direction, n_bytes)))

    def heal(self) -> None:
        """End every fault: deliver what was delayed, reset what has lost bytes, take new connections."""
        self._relay.order(self._relay.heal)

    # What a test waits for.

    @property
    def traffic(self) -> Traffic:
        """Return the traffic so far."""
        return self._relay.traffic

    def wait_for(self, enough: Callable[[Traffic], bool], timeout: float = 10.0) -> Traffic:
        """Return as soon as the traffic is as requested; raise TimeoutError if it never is."""
        return self._relay.wait_for(enough, timeout)

    def close(self) -> None:
        """Reset every connection, free the port and end the thread. Twice is harmless."""
        self._relay.close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _endpoint(url: str) -> str | None:
    """Return where a URL sends its calls if its host is a region, an account or a bucket."""
    found = re.search(r"[?&]endpoint=([^&]*)", url)
    return found[1] if found else None
