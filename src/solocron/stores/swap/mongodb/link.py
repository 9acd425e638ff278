"""One client of the driver's for each process and address, and the driver's errors by what is certain of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakSet

from pymongo import MongoClient, timeout
from pymongo.client_session import ClientSession
from pymongo.errors import (
    AutoReconnect,
    ConfigurationError,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WaitQueueTimeoutError,
    WTimeoutError,
)
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.certificates import refusal
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.mongodb.address import MongoAddress
from solocron.stores.swap.server_time import ServerTime, time_of

__all__ = ["MongoConflict", "MongoLink"]

_WATCHES = 10_000
"""Milliseconds after which a member that does not reply to the driver counts as away."""
_NO_LOGIN, _NO_RIGHT, _CONFLICT = 18, 13, 112
_NO_SESSIONS = "Sessions are not supported"
T = TypeVar("T")


class MongoConflict(Exception):
    """Another transaction was under way on the same keys: nothing was done, and it is worth repeating."""


class MongoLink:
    """The calls of one client."""

    def __init__(self, address: MongoAddress) -> None:
        self.address = address
        self.time: ServerTime = time_of(("mongodb", address.url))

    @property
    def url(self) -> str:
        return self.address.parts.masked

    @property
    def client(self) -> MongoClient[Any]:
        shared = _client(self.address)
        shared.users.add(self)
        return shared.calls

    @property
    def collection(self) -> Any:
        """The collection; what is written to it is on the disks of a majority before the reply."""
        seconds = max(int(self.address.timeout * 1_000), 1)
        return self.client.get_database(self.address.database).get_collection(
            self.address.collection,
            read_preference=ReadPreference.PRIMARY,
            read_concern=ReadConcern("majority"),
            write_concern=WriteConcern("majority", j=True, wtimeout=seconds),
        )

    def close(self) -> None:
        """Say that this client makes no calls for now; the last one closes the connections that they share."""
        key, shared = _key(self.address), _client(self.address)
        shared.users.discard(self)
        if not shared.users:
            _clients.pop(key, None)
            shared.calls.close()

    # --- calls

    def read(self, call: Callable[[], T]) -> T:
        """Make a call that may be repeated; once more if it breaks at once, as it does when a server has restarted."""
        began = time.monotonic()
        for last_try in (False, True):
            try:
                with self.errors():
                    return call()
            except Lost as error:
                if last_try or time.monotonic() - began > self.address.timeout / 2:
                    raise StoreUnavailable(f"{self.url} did not reply: {error}; nothing was written.") from None
        raise AssertionError("the last round returns or raises")

    def hello(self) -> dict[str, Any]:
        """Ask the primary who it is, and what time it is."""
        sent = self.time.begin_call()
        reply: dict[str, Any] = self.read(lambda: self.client.admin.command("hello"))
        told = reply["localTime"]
        low = int(told.timestamp() * 1_000) * 1_000
        self.time.told(low, low + 1_000, sent)
        return reply

    def silent_members(self) -> list[str]:
        """Return the members that the driver has not reached, after it had the time of a call to reach them all."""
        until = time.monotonic() + self.address.timeout
        while True:
            known = self.client.topology_description.server_descriptions()
            silent = sorted(
                f"{host}:{port}" for (host, port), one in known.items() if one.server_type_name == "Unknown"
            )
            if not silent or time.monotonic() > until:
                return silent
            time.sleep(0.02)

    @contextmanager
    def session(self) -> Iterator[ClientSession]:
        """Yield a session; a transaction that is left open in it is called off, as far as the server still replies.

        Nothing is raised for that: a transaction without its commit does nothing, and the caller's own error counts.
        The driver has no bound of its own here, so that a primary that is frozen held the caller until it was given up.
        """
        session = self.client.start_session()
        try:
            yield session
        finally:
            with suppress(PyMongoError), timeout(self.address.timeout / 2):
                session.end_session()

    @contextmanager
    def errors(self, *, within: float | None = None) -> Iterator[None]:
        """Raise the driver's errors as what they mean here: `Lost` where it is not known what became of the call.

        A call takes no longer than the timeout of the address, or than `within`.
        """
        try:
            with timeout(within or self.address.timeout):
                yield
        except (ServerSelectionTimeoutError, WaitQueueTimeoutError) as error:
            text = self.scrubbed(error)
            untrusted = refusal(self.url, text, authority="tlsCAFile=", own="tlsCertificateKeyFile=")
            raise untrusted or StoreUnavailable(
                f"{self.url} cannot be reached: {text[:300]}; nothing was written. Look whether a majority "
                "of the members runs and the hosts and the replica set are right."
            ) from None
        except WTimeoutError as error:
            raise Lost(self.scrubbed(error)) from None
        except OperationFailure as error:
            self._raise_for(error)
        except (AutoReconnect, InvalidOperation) as error:
            raise Lost(self.scrubbed(error)) from None
        except ConfigurationError as error:
            if _NO_SESSIONS in str(error):
                # A member that has just started and has not found its set. The driver may have sent the call before,
                # to another one.
                raise Lost(self.scrubbed(error)) from None
            raise StoreRefused(f"{self.url}: {self.scrubbed(error)}. Nothing was done.") from None
        except PyMongoError as error:
            raise Lost(self.scrubbed(error)) from None

    def _raise_for(self, error: OperationFailure) -> None:
        text = self.scrubbed(error.details.get("errmsg", error) if error.details else error)
        if error.code == _CONFLICT or error.has_error_label("TransientTransactionError"):
            raise MongoConflict(text) from None
        if error.code == _NO_LOGIN:
            raise StoreRefused(f"{self.url} refused the user or password ({text}); nothing was written.") from None
        if error.code == _NO_RIGHT:
            raise StoreRefused(
                f"{self.url}: the user has not the rights: {text}. Grant it readWrite on the database "
                f"{self.address.database!r}. Nothing was written."
            ) from None
        raise Lost(text) from None

    def scrubbed(self, error: object) -> str:
        return self.address.parts.scrub(str(error) or type(error).__name__)


# --- clients: each has threads that watch the replica set, so that the stores of a process share them


class _SharedMongoClient:
    """A client of the driver's and the links that use it."""

    def __init__(self, address: MongoAddress) -> None:
        parts, milliseconds = address.parts, max(int(address.timeout * 1_000), 1)
        user = {}
        if parts.user is not None:
            password = None if parts.password is None else parts.password.reveal()
            user = {"username": parts.user, "password": password}
        self.calls: MongoClient[Any] = MongoClient(
            address.url,
            **user,  # type: ignore[arg-type]
            appname="solocron",
            tz_aware=True,
            retryWrites=False,  # repeats are made here, where it is known what may be repeated
            retryReads=False,
            # Of the threads that watch the members: one that was slow once is not given up. Calls have a bound of their
            # own, see `errors`.
            connectTimeoutMS=_WATCHES,
            serverSelectionTimeoutMS=milliseconds,
        )
        self.users: WeakSet[MongoLink] = WeakSet()


_clients: dict[Hashable, _SharedMongoClient] = {}


def _key(address: MongoAddress) -> Hashable:
    parts = address.parts
    return (
        os.getpid(),
        parts.user,
        None if parts.password is None else parts.password.last,
        address.url,
        address.timeout,
    )


def _client(address: MongoAddress) -> _SharedMongoClient:
    """Return the client of an address in this process."""
    key = _key(address)
    found = _clients.get(key)
    if found is None:
        made = _SharedMongoClient(address)
        found = _clients.setdefault(key, made)  # atomic: a mutex could stay locked over a fork
        if found is not made:
            made.calls.close()
    return found
