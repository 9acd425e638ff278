"""A dispatcher that is made when first needed, so that a program pays only for those that its jobs use."""

from __future__ import annotations

from collections.abc import Callable

from solocron.dispatch.contract import Call, Dispatcher, Interrupt

__all__ = ["LazyDispatcher"]


class LazyDispatcher:
    """Stands for the dispatcher that `make` returns."""

    def __init__(self, make: Callable[[], Dispatcher]) -> None:
        self._make = make
        self._made: Dispatcher | None = None

    def submit(self, call: Call) -> Interrupt:
        if self._made is None:
            self._made = self._make()
        return self._made.submit(call)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
