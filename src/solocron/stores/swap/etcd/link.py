"""Calls of etcd's JSON gateway: connections, login, the server's time, and what each error means for the caller."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

from solocron.clock import SECOND
from solocron.errors import StoreError, StoreRefused, StoreUnavailable
from solocron.stores.certificates import refusal
from solocron.stores.stock import Stock, stock_of
from solocron.stores.swap.etcd.address import EtcdAddress
from solocron.stores.swap.http_wire import HttpWire
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.server_time import ServerTime, time_of

__all__ = ["EtcdFull", "EtcdLink", "packed_text", "unpacked_text"]

_IDLE_MOST = 8
_INVALID, _DENIED, _EXHAUSTED, _UNAUTHENTICATED = 3, 7, 8, 16
"""Codes with which etcd certainly did nothing."""


def packed_text(text: str) -> str:
    """Return a text as the gateway wants bytes."""
    return base64.b64encode(text.encode()).decode()


def unpacked_text(packed: str) -> str:
    return base64.b64decode(packed).decode(errors="replace")


class EtcdFull(StoreRefused):
    """The quota is used up: etcd takes no transactions any more, not even those that only read."""


class EtcdWire(HttpWire):
    """One connection, and which cluster it leads to once that has told."""

    def __init__(self, connection: HTTPConnection, host: tuple[str, int]) -> None:
        super().__init__(connection)
        self.host = host
        self.server = ""


class EtcdLink:
    """The calls of one client. Clients of one process and address share idle connections and the time."""

    def __init__(self, address: EtcdAddress) -> None:
        self.address = address
        self.url = address.parts.masked
        self.time: ServerTime = time_of(("etcd", address.parts.scheme, tuple(sorted(address.hosts))))
        self.stock: Stock[EtcdWire] = stock_of(("etcd", address.parts.secret, address.timeout), keep=_IDLE_MOST)
        self._token = ""

    def read(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make a call that may be repeated: each idle connection breaks once when a server restarts."""
        began = time.monotonic()
        while True:
            try:
                return self.call(path, body)
            except Lost as error:
                if time.monotonic() - began > self.address.timeout / 2 or began == 0.0:
                    raise StoreUnavailable(f"{self.url} did not reply: {error}; nothing was written.") from None
                began = 0.0

    def call(self, path: str, body: Mapping[str, Any], *, server: str | None = None) -> dict[str, Any]:
        """Make a call; raise `Lost` if it was sent and what became of it is not known.

        With `server`, only on a connection that leads to that cluster; else the reply is empty.
        """
        if self.address.parts.user is not None and not self._token:
            self._log_in()
        for again in (False, True):
            wire = self._wire()
            if server is not None and self._server_of(wire) != server:
                self.stock.give(wire)
                return {}
            try:
                return self._send(wire, path, body)
            except _NotSent:
                if again:
                    raise
            except _TokenExpired:
                if again:
                    raise StoreRefused(
                        f"{self.url} accepts no token that it has just given; nothing was done"
                    ) from None
                self._log_in()
        raise AssertionError("the last round returns or raises")

    def metrics(self) -> dict[str, float]:
        """Return the plain figures of the member's page for Prometheus; none where it is kept elsewhere or refused."""
        wire = self._wire()
        try:
            wire.connection.request("GET", "/metrics")
            response = wire.connection.getresponse()
            text = response.read().decode(errors="replace")
        except (OSError, HTTPException):
            return {}
        finally:
            wire.discard()  # a page of a hundred kilobytes, and not JSON: no other call is to find its rest
        return dict(_figures(text)) if response.status == 200 else {}

    def clocks(self) -> dict[tuple[str, int], tuple[float, float]]:
        """Return between which bounds the clock of each member that replies is ahead of the boot clock, in seconds."""
        found: dict[tuple[str, int], tuple[float, float]] = {}
        for host in sorted(self.address.hosts):
            connection = self.address.connection(to=host)
            try:
                connection.connect()
                sent = self.time.begin_call()
                connection.request("GET", "/version")
                date = connection.getresponse().getheader("Date")
                received = self.time.begin_call()
            except (OSError, HTTPException):
                continue
            finally:
                connection.close()
            if date:
                told = _instant(date) / SECOND
                found[host] = told - received, told + 1.0 - sent
        return found

    def _server_of(self, wire: EtcdWire) -> str:
        if not wire.server:
            try:
                self._send(wire, "/v3/kv/range", {"key": packed_text("\0"), "limit": 1}, keep=True)
            except Lost as error:
                raise StoreUnavailable(f"{self.url} did not reply: {error}. Nothing was done.") from None
        return wire.server

    def _send(self, wire: EtcdWire, path: str, body: Mapping[str, Any], *, keep: bool = False) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = self._token
        sent = self.time.begin_call()
        payload = json.dumps(body).encode()
        try:
            try:
                wire.connection.request("POST", path, payload, headers)
            except (OSError, HTTPException) as error:  # not all of it left this machine: etcd does nothing with a part
                self._failed(wire)
                raise _NotSent(str(self._away(error))) from None
            try:
                response = wire.connection.getresponse()
                text = response.read()
            except (OSError, HTTPException) as error:
                self._failed(wire)
                raise Lost(self._scrubbed(error)) from None
        except BaseException:
            # Also interrupted in the middle: the next reader would get this call's reply.
            wire.discard()
            raise
        self._observe(response, sent)
        reply = _parsed(text)
        if response.status == 200:
            header = reply.get("header", {})
            wire.server = f"etcd.{int(header.get('cluster_id', 0)):x}" if header else wire.server
            if not keep:
                self.stock.give(wire)
            return reply
        wire.discard()
        raise self._refusal(response.status, reply, path)

    def _observe(self, response: HTTPResponse, sent: float) -> None:
        date = response.getheader("Date")
        if date:
            low = _instant(date)
            self.time.told(low, low + SECOND, sent)

    # --- connections

    def _wire(self) -> EtcdWire:
        found = self.stock.take(self)
        if found is not None:
            return found
        error: StoreError | None = None
        for _ in self.address.hosts:
            try:
                return self.connect()
            except StoreUnavailable as away:
                error = error or away
        assert error is not None
        raise error

    def connect(self, timeout: float | None = None) -> EtcdWire:
        """Return a new connection to the first member."""
        connection, host = self.address.connection(timeout), self.address.hosts[0]
        try:
            connection.connect()
        except (OSError, HTTPException) as error:
            connection.close()
            self.address.failed(host)
            text = self._scrubbed(error)
            if isinstance(error, ssl.SSLError):
                untrusted = refusal(self.url, text, authority="ca=", own="cert=, key=")
                if untrusted is not None:
                    raise untrusted from None
                if "wrong_version_number" in text.lower():
                    raise StoreRefused(
                        f"{self.url} offers no TLS, which etcds:// demands; nothing was written. Switch it on, or "
                        "write etcd://."
                    ) from None
            raise self._away(error) from None
        return EtcdWire(connection, host)

    def _failed(self, wire: EtcdWire) -> None:
        self.address.failed(wire.host)

    def close(self) -> None:
        self.stock.leave(self)

    # --- login and errors

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a call that is not made through this link: the token, if there is one."""
        return {"Authorization": self._token} if self._token else {}

    def _log_in(self) -> None:
        parts = self.address.parts
        password = parts.password.reveal() if parts.password is not None else ""
        self._token = ""
        try:
            reply = self._send(self._wire(), "/v3/auth/authenticate", {"name": parts.user, "password": password})
        except Lost as error:
            raise StoreUnavailable(f"{self.url} did not reply to the login: {error}. Nothing was done.") from None
        except _NotEnabled:
            return  # a user is named, and the server asks for none
        self._token = str(reply.get("token", ""))

    def _away(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self.url} cannot be reached: {self._scrubbed(error)}; nothing was written. Look whether the server runs "
            "and the host and port are right."
        )

    def _refusal(self, status: int, reply: Mapping[str, Any], path: str) -> Exception:
        """Return what an error means; only what certainly did nothing is told as an error of the store."""
        text = self._scrubbed(str(reply.get("message") or reply.get("error") or f"HTTP {status}"))
        code = reply.get("code")
        if status == 404 and code is None:
            return StoreRefused(
                f"{self.url} has no JSON gateway ({path} is not there); nothing was done. Name a member of the cluster "
                "and not a gRPC proxy, and leave --enable-grpc-gateway on."
            )
        if "authentication is not enabled" in text:
            return _NotEnabled()
        if code == _UNAUTHENTICATED or "invalid auth token" in text:
            return (
                _TokenExpired() if self._token else StoreRefused(f"{self.url} wants a user: {text}. Nothing was done.")
            )
        if "authentication failed" in text:
            return StoreRefused(f"{self.url} refused the user or password: {text}. Nothing was done.")
        if "user name is empty" in text:
            return StoreRefused(f"{self.url} wants a user and a password in the URL: {text}. Nothing was done.")
        if code == _DENIED:
            return StoreRefused(
                f"{self.url}: the user has not the rights: {text}. Grant it readwrite on the prefix "
                f"{self.address.prefix}/ (etcdctl role grant-permission --prefix). Nothing was done."
            )
        if "space exceeded" in text:
            return EtcdFull(
                f"{self.url} is full ({text}) and takes no writes; nothing was written. Compact and defragment it, "
                "disarm the alarm, and set --auto-compaction-retention: see `solocron doctor`."
            )
        if code == _EXHAUSTED or status == 429:
            return StoreUnavailable(f"{self.url} has too much to do: {text}. Nothing was done.")
        if code == _INVALID:
            return StoreRefused(f"{self.url} refused a call: {text}. Nothing was done.")
        return Lost(text)

    def _scrubbed(self, error: object) -> str:
        return self.address.parts.scrub(str(error) or type(error).__name__)


class _NotSent(StoreUnavailable):
    """The connection was broken before the call: a new one may do."""


class _TokenExpired(Exception):
    """The server has forgotten the token: log in again."""


class _NotEnabled(Exception):
    """The server has no users."""


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(text)
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) else {}


def _figures(page: str) -> Iterator[tuple[str, float]]:
    for line in page.splitlines():
        name, _, value = line.partition(" ")
        with suppress(ValueError):
            yield name, float(value)


@lru_cache(maxsize=8)
def _instant(date: str) -> int:
    return int(parsedate_to_datetime(date).timestamp()) * SECOND
