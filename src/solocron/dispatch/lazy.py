"""A dispatcher that is made when first needed, so that a program without coroutines never imports asyncio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solocron.dispatch.contract import Begin, Dispatcher, End, Interrupt

__all__ = ["LazyDispatcher"]


class LazyDispatcher:
    """Stands for the dispatcher that `make` returns."""

    def __init__(self, make: Callable[[], Dispatcher]) -> None:
        self._make = make
        self._made: Dispatcher | None = None

    def submit(self, body: Callable[[], Any], *, begin: Begin, end: End, name: str) -> Interrupt:
        if self._made is None:
            self._made = self._make()
        return self._made.submit(body, begin=begin, end=end, name=name)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
