"""Store calls of coroutines have threads of their own: they and the application never wait for each other's."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

from solocron.dispatch.in_thread import in_thread

SOON = 20
MANY = 40
"""More than any pool has threads by default."""


def test_a_call_does_not_wait_for_the_applications_threads() -> None:
    end = threading.Event()

    async def app() -> int:
        with ThreadPoolExecutor(1) as small:
            asyncio.get_running_loop().set_default_executor(small)
            stuck = asyncio.ensure_future(asyncio.to_thread(end.wait, SOON))
            try:
                return await asyncio.wait_for(in_thread(lambda: 42), SOON)
            finally:
                end.set()
                await stuck

    assert asyncio.run(app()) == 42


def test_nor_the_application_for_ours() -> None:
    end = threading.Event()

    async def app() -> int:
        stuck = [asyncio.ensure_future(in_thread(lambda: end.wait(SOON))) for _ in range(MANY)]
        await asyncio.sleep(0)  # they are handed over first
        try:
            return await asyncio.wait_for(asyncio.to_thread(lambda: 42), SOON / 2)
        finally:
            end.set()
            assert all(await asyncio.gather(*stuck))

    assert asyncio.run(app()) == 42


def test_calls_that_wait_for_other_transactions_keep_no_call_of_the_store_waiting() -> None:
    """What they wait for may be held by a coroutine whose next call is one of the store."""
    end = threading.Event()

    async def app() -> None:
        waiting = [asyncio.ensure_future(in_thread(lambda: end.wait(SOON), alone=True)) for _ in range(MANY)]
        await asyncio.sleep(0)
        await asyncio.wait_for(in_thread(end.set), SOON / 2)
        assert all(await asyncio.gather(*waiting))

    asyncio.run(app())


def test_a_call_sees_the_context_of_its_caller() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    async def app() -> list[str]:
        who.set("the caller")
        return [await in_thread(who.get), await in_thread(who.get, alone=True)]

    assert asyncio.run(app()) == ["the caller", "the caller"]
