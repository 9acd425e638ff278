"""The stream of one document: a change stream of MongoDB's, read on the thread that waits."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any

from pymongo.errors import OperationFailure, PyMongoError

from solocron.errors import StoreUnavailable
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.mongodb.link import MongoConflict, MongoLink

__all__ = ["MongoStream"]

_LOOK = 2.0
"""Seconds for which the server holds a question back; a client that is closed is noticed then at the latest."""
_HISTORY_LOST = 286


class MongoStream:
    """One stream, opened when a thread first waits and kept between two waits."""

    def __init__(self, link: MongoLink, key: str) -> None:
        self._link = link
        self._key = key
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._cursor: Any = None
        self._busy = threading.Lock()
        self._closed = threading.Event()

    def open(self) -> None:
        if self._process != os.getpid():
            self._begin()
        self._closed.clear()

    def close(self) -> None:
        """End a wait; a thread that reads the stream closes it."""
        self._closed.set()
        if self._process == os.getpid() and self._busy.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._busy.release()

    def position(self) -> Any:
        """Return the token of the stream as it is now."""
        return self._link.read(self._token)

    def _token(self) -> Any:
        with self._watch(None) as cursor:
            return cursor.resume_token

    def _watch(self, after: Any) -> Any:
        lasts = max(int(min(_LOOK, self._link.address.timeout / 2) * 1_000), 1)
        return self._link.collection.watch(
            [{"$match": {"documentKey._id": self._key}}], start_after=after, max_await_time_ms=lasts
        )

    def wait(self, after: Any, timeout: float) -> tuple[Any, Sequence[str | None]]:
        """Return the values that were written after a token, and the token of the last."""
        if self._process != os.getpid():
            self._begin()
        until = time.monotonic() + timeout
        with self._busy:
            while not self._closed.is_set():
                try:
                    with self._link.errors(within=_LOOK * 4):
                        if self._cursor is None:
                            self._cursor = self._watch(after)
                        event = self._cursor.try_next()
                        token = self._cursor.resume_token
                except (Lost, MongoConflict) as error:
                    self._drop()
                    if self._closed.is_set():
                        break
                    if self._is_gone(after):
                        return self._link.read(self._token), [None]
                    raise StoreUnavailable(f"{self._link.url} broke the stream of notifications: {error}") from None
                except BaseException:
                    self._drop()
                    raise
                if event is not None:
                    return token, [(event.get("fullDocument") or {}).get("v")]
                after = token
                if time.monotonic() >= until:
                    return after, []
            self._drop()
            return after, []

    def _is_gone(self, after: Any) -> bool:
        """Return whether the server has forgotten the place: what was written meanwhile cannot be told."""
        try:
            self._watch(after).close()
        except OperationFailure as error:
            return error.code == _HISTORY_LOST
        except PyMongoError:
            return False
        return False

    def _drop(self) -> None:
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            try:
                cursor.close()
            except PyMongoError:
                pass  # the server forgets it by itself
