"""Calls to the server, each on a connection of its own that is thrown away if the call was interrupted.

Idle connections lie in a stock that the stores of one process share. They are one client's each time they are used: a
request is remembered under the client's name together with the connection's.

Nothing is ever sent twice behind the caller's back: a call that was sent and got no reply raises `ReplyLost`, and only
a caller that knows the call to be harmless, or recognisable, may send it again.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from typing import Any

import redis.exceptions as driver

from solocron.errors import StoreError, StoreRefused, StoreUnavailable
from solocron.stores.certificates import refusal
from solocron.stores.redis.address import Address
from solocron.stores.redis.wire import pack
from solocron.stores.stock import Stock
from solocron.stores.url import StoreUrl

__all__ = ["IDLE_MOST", "Moved", "RedisLink", "ReplyLost", "ScriptUnknown", "UnknownHandlers", "Wire"]

IDLE_MOST = 8
"""Connections that may lie idle for each store."""
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
    """One connection. The server remembers its last request under the name of the client that uses it."""

    __slots__ = ("_drops", "_stock", "_token", "connection", "name", "number")

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.name = ""
        self.number = 0
        self._token = secrets.token_hex(4)
        self._stock: Stock[Wire] | None = None
        self._drops = 0

    def lend(self, client: str, stock: Stock[Wire], drops: int) -> Wire:
        """Become a connection of this client; requests go on being numbered, so that none is taken for another."""
        self.name, self._stock, self._drops = f"{client}.{self._token}", stock, drops
        return self

    def give_back(self) -> None:
        """Go where it came from, unless everything that lay there has been closed meanwhile."""
        stock, self._stock = self._stock, None
        if stock is not None and stock.drops == self._drops:
            stock.give(self)
        else:
            self.close()

    def is_stale(self) -> bool:
        """Return whether it holds a reply that no call waited for; raise if the other side has closed it."""
        return bool(self.connection.can_read(timeout=0))

    def close(self) -> None:
        self.connection.disconnect()

    def discard(self) -> None:
        self.connection.disconnect()


class RedisLink:
    """A client of one server. `client` names it to the others; after a fork it is a new one."""

    def __init__(self, parts: StoreUrl, *, timeout: float, stock: Stock[Wire]) -> None:
        self.timeout = timeout
        self.address = Address(parts, timeout=timeout)
        self._parts = parts
        self._stock = stock
        self._begin()

    def _begin(self) -> None:
        self.client = secrets.token_hex(8)
        self._process = os.getpid()

    def call(self, words: Sequence[str]) -> Any:
        """Send one command and return its reply."""
        return self.send(self.wire(), pack(words))

    def wire(self) -> Wire:
        """Return a connected connection that no other call uses; `send` gives it back."""
        if self._process != os.getpid():
            self._begin()
        stock = self._stock
        drops = stock.drops
        wire = stock.take(self) or self._connect()
        return wire.lend(self.client, stock, drops)

    def send(self, wire: Wire, command: bytes) -> Any:
        """Send one packed command and read its reply; the connection survives only a reply that was read to its end."""
        connection = wire.connection
        try:
            connection.send_packed_command([command])
            reply = connection.read_response(disable_decoding=True)
        except driver.ResponseError as error:
            wire.give_back()
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
        wire.give_back()
        return reply

    def new_connection(self) -> Any:
        """Return a connected connection outside the pool."""
        return self._connect().connection

    def close(self) -> None:
        """Leave the stock: what lies idle there is closed with the last store, and what is in use as it comes back."""
        self._stock.leave(self)

    def _connect(self) -> Wire:
        """Connect to the server that takes the writes; of several seeds of a cluster, to the first that replies."""
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
        return Wire(connection)

    def _scrubbed(self, error: BaseException) -> str:
        return self._parts.scrub(str(error) or type(error).__name__)

    def _refusal(self, error: Exception) -> StoreError:
        """Return the server's error as one for the caller; in every case nothing was written."""
        text, where = self._scrubbed(error), self._parts.masked
        moved = _MOVED.search(text)
        if moved and (isinstance(error, driver.MovedError) or text.startswith("MOVED")):
            # Each namespace of a cluster has a server of its own, and others may be right here: share nothing from now.
            self._stock.leave(self)
            self._stock = Stock(keep=IDLE_MOST)
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
            self._stock.drop()  # they lead to the wrong server
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
