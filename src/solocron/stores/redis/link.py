"""Calls to the server, each on a connection of its own that is thrown away if the call was interrupted.

Nothing is ever sent twice behind the caller's back: a call that was sent and got no reply raises `ReplyLost`, and only
a caller that knows the call to be harmless, or recognisable, may send it again.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Sequence
from typing import Any

import redis.exceptions as driver

from solocron.errors import StoreError, StoreRefused, StoreUnavailable
from solocron.stores.certificates import refusal
from solocron.stores.redis.address import Address
from solocron.stores.redis.wire import pack
from solocron.stores.url import StoreUrl

__all__ = ["Link", "Moved", "ReplyLost", "ScriptUnknown", "UnknownHandlers", "Wire"]

_IDLE_MOST = 8
# Drivers and servers differ in whether an error keeps its code in front, and scripts wrap it in a sentence.
_CODES = re.compile(
    r"\b(OOM|READONLY|NOPERM|WRONGTYPE|MISCONF|NOREPLICAS|NOHANDLERS|BUSY|ASK|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|LOADING)\b"
)
_MOVED = re.compile(r"\d+ (\S*):(\d+)$")


class ReplyLost(StoreUnavailable):
    """The call was sent and may or may not have been carried out."""


class Moved(StoreUnavailable):
    """Another node of the cluster has this namespace now; nothing was done, and the next call goes there."""


class ScriptUnknown(StoreError):
    """The server does not know a script by its digest; nothing was done."""


class UnknownHandlers(StoreError):
    """The server does not know this set of handlers; nothing was done."""


class Wire:
    """One connection, and the name under which the server remembers its last request."""

    __slots__ = ("connection", "name", "number")

    def __init__(self, connection: Any, client: str) -> None:
        self.connection = connection
        self.name = f"{client}.{secrets.token_hex(4)}"
        self.number = 0


class Link:
    """A few idle connections to one server. `client` names this client to the others; after a fork it is a new one."""

    def __init__(self, parts: StoreUrl, *, timeout: float) -> None:
        self.timeout = timeout
        self.address = Address(parts, timeout=timeout)
        self._parts = parts
        self._begin()

    def _begin(self) -> None:
        self.client = secrets.token_hex(8)
        self._process = os.getpid()
        self._mutex = threading.Lock()
        self._idle: list[Wire] = []
        self._closings = 0

    def call(self, words: Sequence[str]) -> Any:
        """One command and its reply."""
        return self.send(self.wire(), pack(words))

    def wire(self) -> Wire:
        """A connected connection that nobody else uses; `send` gives it back."""
        if self._process != os.getpid():
            self._begin()  # the parent's connections are the parent's
        while True:
            with self._mutex:
                wire = self._idle.pop() if self._idle else None
            if wire is None:
                return self._connect()
            if not _spoiled(wire.connection):
                return wire
            wire.connection.disconnect()

    def send(self, wire: Wire, command: bytes) -> Any:
        """Send one packed command and read its reply; the connection survives only a reply that was read to its end."""
        closings = self._closings
        connection = wire.connection
        try:
            connection.send_packed_command([command])
            reply = connection.read_response(disable_decoding=True)
        except driver.ResponseError as error:
            self._give_back(wire, closings)
            raise self._refusal(error) from None
        except driver.AuthenticationError as error:
            connection.disconnect()
            raise self._refusal(error) from None
        except driver.BusyLoadingError:
            connection.disconnect()
            raise StoreUnavailable(f"{self._parts.masked} is still loading its data; nothing was done") from None
        except (driver.RedisError, OSError) as error:
            connection.disconnect()
            self.address.failed()
            raise ReplyLost(f"{self._parts.masked} did not answer: {self._scrubbed(error)}") from None
        except BaseException:
            # Interrupted in the middle (a signal, a cancelled thread): the next reader would get this call's reply.
            connection.disconnect()
            raise
        self._give_back(wire, closings)
        return reply

    def new_connection(self) -> Any:
        """A connection outside the pool, connected."""
        return self._connect().connection

    def drop(self) -> None:
        """Close the idle connections; those in use are closed when they come back."""
        if self._process != os.getpid():
            self._begin()
        with self._mutex:
            self._closings += 1
            idle, self._idle = self._idle, []
        for wire in idle:
            wire.connection.disconnect()

    def _connect(self) -> Wire:
        """Connect to whoever takes the writes; of several seeds of a cluster, to the first that answers."""
        for _ in range(self.address.seeds - 1):
            try:
                return self._connect_once()
            except StoreUnavailable:
                pass  # `failed` has put the next one first
        return self._connect_once()

    def _connect_once(self) -> Wire:
        try:
            connection = self.address.connection()
            connection.connect()
        except driver.AuthenticationError as error:
            raise self._refusal(error) from None
        except driver.ResponseError as error:
            raise self._refusal(error) from None
        except (driver.RedisError, OSError) as error:
            self.address.failed()
            own = "ssl_certfile=, ssl_keyfile="
            untrusted = refusal(self._parts.masked, self._scrubbed(error), authority="ssl_ca_certs=", own=own)
            if untrusted is not None:
                raise untrusted from None
            raise StoreUnavailable(
                f"{self._parts.masked} cannot be reached: {self._scrubbed(error)}. Nothing was done; "
                "look whether the server runs and the host and port are right."
            ) from None
        return Wire(connection, self.client)

    def _give_back(self, wire: Wire, closings: int) -> None:
        with self._mutex:
            keep = closings == self._closings and len(self._idle) < _IDLE_MOST
            if keep:
                self._idle.append(wire)
        if not keep:
            wire.connection.disconnect()

    def _scrubbed(self, error: BaseException) -> str:
        return self._parts.scrub(str(error) or type(error).__name__)

    def _refusal(self, error: Exception) -> StoreError:
        """What the server's error means for the caller; in every case nothing was written."""
        text, where = self._scrubbed(error), self._parts.masked
        moved = _MOVED.search(text)
        if moved and (isinstance(error, driver.MovedError) or text.startswith("MOVED")):
            self.drop()
            self.address.moved(moved.group(1), int(moved.group(2)))
            return Moved(f"{where}: the cluster has moved this namespace; nothing was done")
        found = _CODES.search(text)
        code = found.group(1) if found else ""
        if isinstance(error, driver.NoScriptError):
            return ScriptUnknown(text)
        if code == "NOHANDLERS":
            return UnknownHandlers(text)
        if isinstance(error, driver.OutOfMemoryError) or code == "OOM":
            return StoreRefused(
                f"{where} is full (maxmemory is reached); nothing was written. Raise maxmemory, or keep less history."
            )
        if isinstance(error, driver.ReadOnlyError) or code == "READONLY":
            self.drop()
            self.address.failed()
            return StoreUnavailable(f"{where} is a replica and takes no writes; nothing was written. Name the primary.")
        if isinstance(error, driver.AuthenticationError):
            return StoreRefused(f"{where} refused the user or password: {text}. Nothing was done.")
        if isinstance(error, driver.NoPermissionError) or code == "NOPERM":
            return StoreRefused(
                f"{where}: the user has not the rights: {text}. `solocron doctor` names what is missing."
            )
        if code == "MISCONF":
            return StoreRefused(f"{where} takes no writes because it cannot persist them: {text}. Nothing was written.")
        if code in ("NOREPLICAS", "BUSY", "ASK", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "LOADING") or isinstance(
            error, (driver.ClusterDownError, driver.TryAgainError, driver.MasterDownError, driver.AskError)
        ):
            return StoreUnavailable(f"{where} cannot serve this at the moment: {text}. Nothing was written.")
        return StoreRefused(f"{where} refused a call: {text}. Look at the server's log.")


def _spoiled(connection: Any) -> bool:
    """Whether an idle connection was closed by the other side, or holds a reply that nobody waited for."""
    try:
        return bool(connection.can_read(timeout=0))
    except (driver.RedisError, OSError):
        return True
