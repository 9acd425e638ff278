"""`ApiCall`: all that a handler gets. A handler returns a frozen value, whose annotations are its schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from solocron.service.board.glance import Board
from solocron.service.board.watcher import Watcher
from solocron.service.examination import Examination
from solocron.service.identity import KnownCaller
from solocron.service.logins import Logins
from solocron.service.pages.frame import Frame
from solocron.service.pages.render import DashboardPage
from solocron.service.reads import Reads
from solocron.service.request import RequestHead
from solocron.service.roles import Role
from solocron.service.ticking import Ticking
from solocron.service.writes import Writes

__all__ = ["Answer", "ApiCall", "EventText", "File", "Redirect", "ShownPage", "Text", "Values"]

T = TypeVar("T")

Values = Literal["operate", "read", "never"]
"""Who may see results, payloads, outputs and the values of steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """A request that the guard has let through, with its parameters read."""

    head: RequestHead
    caller: KnownCaller | None
    """None on public routes."""
    names: Mapping[str, str]
    """Names in the path."""
    given: Mapping[str, Any]
    """Parameters of the query."""
    body: Mapping[str, Any]
    path: str
    """The path as the table has it."""
    key: str
    """The Idempotency-Key; empty where none is needed."""
    reads: Reads
    writes: Writes
    watcher: Watcher
    logins: Logins
    is_ready: Callable[[], bool]
    metrics: Callable[[], str]
    """Return the fleet metrics as text."""
    board: Board
    examination: Examination
    ticking: Ticking | None = None
    """None where no code is at hand; the route does not exist there."""
    values: Values = "operate"
    read_only: bool = False
    """True if the service refuses every write."""
    namespaces: Mapping[str, str] = field(default_factory=dict)
    """Addresses of the namespaces of this service that the caller may see, by name."""
    live: bool = True
    """False if pages get no stream, and ask again every few seconds."""
    is_form: bool = False
    """True if it came from a form of the dashboard."""

    @property
    def who(self) -> str:
        """The name of the caller, as records and the audit keep it."""
        assert self.caller is not None
        return self.caller.identity.name

    @property
    def operates(self) -> bool:
        """True if this caller may act here."""
        return self.caller is not None and self.caller.identity.role is Role.OPERATE and not self.read_only

    @property
    def sees_values(self) -> bool:
        """True if this caller may see results, payloads and outputs, where it asks for them."""
        if self.values == "never" or self.caller is None:
            return False
        return self.values == "read" or self.caller.identity.role is Role.OPERATE


@dataclass(frozen=True, slots=True)
class Text:
    """A plain text, or what Prometheus reads as one."""

    content: str
    status: int = 200
    kind: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that a browser may keep forever: its address changes with its content."""

    content: bytes
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPage:
    """A page of the dashboard and its frame."""

    page: DashboardPage
    frame: Frame
    seen: str | None = None
    """What was read from the store for it, as text: a page made from the same is the same page. None: not known."""
    status: int = 200


@dataclass(frozen=True, slots=True)
class EventText:
    """Server-sent events for a client that asks again; an adapter that can keeps a stream open instead."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another page, to be fetched with GET."""

    to: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A value with a status or headers of its own."""

    value: T
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
