"""The `with` block of a key, the same for a key of the store and for one in the user's transaction."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Any, NoReturn

from solocron.effects.results import plain_json
from solocron.errors import InvalidError, NotEntered
from solocron.spans import span

__all__ = ["Claim", "OnceBlock"]


class Claim:
    """Value of the `with` block: true for the caller that performs the effect; for others, the saved result."""

    def __init__(self, key: str, *, first: bool, value: Any = None, uncertain: bool = False) -> None:
        self.key = key
        self.first = first
        self.uncertain = uncertain
        """True if it was skipped because its outcome is unknown (`on_uncertain="skip"`)."""
        self.value = value

    def __bool__(self) -> bool:
        return self.first

    def save(self, value: Any) -> None:
        """Keep a result with the key if the block ends well: later callers read it as `value`."""
        if not self.first:
            raise InvalidError(
                f"key {self.key!r}: only the caller that performs the effect can save a result; nothing was saved."
            )
        self.value = plain_json(value, whose=f"key {self.key!r}")


class OnceBlock:
    """A sync and async context manager, with a span around all of it where there is tracing."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._span: AbstractContextManager[object] = ExitStack()

    def __bool__(self) -> NoReturn:
        """Refuse `if run.once(key):`, which would be true for every caller."""
        raise NotEntered(
            f"key {self.key!r} was used as a truth value before it was entered. Nothing was begun or marked; write "
            "`with ... as claim:` (in a coroutine `async with`) and inside it `if claim:`."
        )

    def __enter__(self) -> Claim:
        with ExitStack() as opened:
            note = opened.enter_context(span(f"once {self.key}", {"solocron.key": self.key}))
            claim = self._enter()
            note("solocron.key.first", claim.first)
            self._span = opened.pop_all()
        return claim

    async def __aenter__(self) -> Claim:
        with ExitStack() as opened:
            note = opened.enter_context(span(f"once {self.key}", {"solocron.key": self.key}))
            claim = await self._enter_async()
            note("solocron.key.first", claim.first)
            self._span = opened.pop_all()
        return claim

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as closing:
            closing.push(self._span)
            self._leave(error)
            if error is not None:
                closing.pop_all()
                self._span.__exit__(kind, error, trace)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as closing:
            closing.push(self._span)
            await self._leave_async(error)
            if error is not None:
                closing.pop_all()
                self._span.__exit__(kind, error, trace)

    def _enter(self) -> Claim:
        """Begin, or find out that it is done."""
        raise NotImplementedError

    async def _enter_async(self) -> Claim:
        raise NotImplementedError

    def _leave(self, error: BaseException | None) -> None:
        """End the block, which raised `error` or nothing."""
        raise NotImplementedError

    async def _leave_async(self, error: BaseException | None) -> None:
        raise NotImplementedError
