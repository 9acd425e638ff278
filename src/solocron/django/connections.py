"""Database connections around a run, as Django has them around a request; bodies run on threads outside of any."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, reset_queries

from solocron.runs.async_run import AsyncRun

__all__ = ["around_run", "close_connections"]


def around_run(run: object, call: Callable[[], Any]) -> Any:
    """Call a body between two looks at the connections of its thread; a coroutine's are those of asgiref's thread."""
    if isinstance(run, AsyncRun):
        return _awaited(call)
    _tidy()
    try:
        return call()
    finally:
        _tidy()


async def _awaited(call: Callable[[], Awaitable[Any]]) -> Any:
    tidy = sync_to_async(_tidy, thread_sensitive=True)
    await tidy()
    try:
        return await call()
    finally:
        await tidy()


def _tidy() -> None:
    """Close connections that are broken or past CONN_MAX_AGE.

    Not `close_old_connections`, which also drops one whose transaction is open: a job that runs inside a test would
    lose the test's.
    """
    reset_queries()
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def close_connections() -> None:
    """Close the connections of a thread that ends: with CONN_MAX_AGE they would stay open until they are collected."""
    connections.close_all()
