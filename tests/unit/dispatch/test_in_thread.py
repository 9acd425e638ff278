"""Store calls of coroutines have threads of their own, and those of a private loop end with it."""

from __future__ import annotations

import asyncio
import threading

from solocron.dispatch.eventloop import LoopDispatcher
from solocron.dispatch.in_thread import in_thread

LONG = 30.0


def test_the_threads_of_a_private_loop_end_with_its_dispatcher() -> None:
    """A log record of a failed body keeps its traceback, and with it the loop: the threads must not wait for that."""
    dispatcher = LoopDispatcher()
    loop = dispatcher._running_loop()
    thread = asyncio.run_coroutine_threadsafe(in_thread(threading.current_thread), loop).result(LONG)
    assert thread.name.startswith("solocron-calls")
    dispatcher.close()
    thread.join(LONG)
    assert not thread.is_alive()
