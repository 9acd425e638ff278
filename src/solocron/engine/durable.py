"""What a run's durable verbs need of the engine, and the engine of them; `solocron.effects` has the verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn, Protocol

__all__ = ["Attempt", "ClaimOfKey", "MakeVerbs", "OnceBlock", "Verbs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The facts and rights of one attempt."""

    run: str
    node: str
    session: str
    fence: int
    scope: str
    """Within which fences are compared: the job, or the run where several may run at once."""
    check: Callable[[], None]
    """Raises if the body must stop."""
    lease: Callable[[], None]
    """Raises only if the lease is lost."""


class ClaimOfKey(Protocol):
    """True for the one that shall do it; `value` is the result that was saved."""

    key: str
    first: bool
    uncertain: bool
    value: Any

    def __bool__(self) -> bool: ...
    def save(self, value: Any) -> None: ...


class OnceBlock(Protocol):
    """A `with` or `async with` block that one caller enters with a true claim; not true by itself."""

    def __bool__(self) -> NoReturn: ...
    def __enter__(self) -> ClaimOfKey: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def __aenter__(self) -> ClaimOfKey: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Verbs(Protocol):
    """The verbs with I/O of one attempt, in both colours."""

    step: Callable[..., Any]
    step_async: Callable[..., Any]
    sleep: Callable[..., None]
    sleep_async: Callable[..., Any]

    def once(self, key: str, *, connection: Any = None, **options: Any) -> OnceBlock: ...
    def guard(self, connection: Any) -> None: ...
    async def guard_async(self, connection: Any) -> None: ...
    def claim_items(self, connection: Any, name: str, ids: Any) -> list[Any]: ...
    async def claim_items_async(self, connection: Any, name: str, ids: Any) -> list[Any]: ...


MakeVerbs = Callable[[Attempt], Verbs]
