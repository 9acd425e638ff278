"""`Route`: one row of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from solocron.service.bodies import BodyField
from solocron.service.call import ApiCall
from solocron.service.parameters import Parameter
from solocron.service.roles import RouteAccess

__all__ = ["Feature", "Method", "Route"]

Method = Literal["GET", "POST", "PUT", "DELETE"]


class Feature(StrEnum):
    """Features that a service may lack."""

    TICK = "tick"
    """Code to run: a scheduler whose jobs are declared here."""
    LIVE = "live"
    """Streams, by which open pages learn of changes."""
    CODE = "code"
    """One-time codes, printed by the process itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row of the table. There is no default for `access`: a route without one cannot be built."""

    method: Method
    path: str
    access: RouteAccess
    handler: Callable[[ApiCall], Any]
    parameters: tuple[Parameter, ...] = ()
    fields: tuple[BodyField, ...] = ()
    creates_runs: bool = False
    """True if it needs an Idempotency-Key."""
    asks_store: bool = True
    """False if it may be answered at once, on the event loop."""
    form: bool = False
    """True for the forms of the dashboard: they take form encoding and nothing else, and are not part of the API."""
    streams: bool = False
    """True if its answer goes on as long as the client stays, where the adapter can do that."""
    edits: bool = False
    """True if it changes what a job is: only where editing is allowed."""
    needs: Feature | None = None
    """What must be at hand; without it the route does not exist."""
    lasts: bool = False
    """True if it takes as long as jobs do: it has a thread of its own, and no limit of time."""
    ignores_body: bool = False
    """True if any body will do: some platforms cannot be told to send none."""
    page: bool = False
    """True for what a browser shows: HTML and its files. They are not part of the API."""
    shared: bool = False
    """True for a page whose main part is the same for every caller of a role."""
    watched: bool = False
    """True if it shows what the watcher keeps: it goes on looking for a minute after such a request."""
    any_host: bool = False
    """True for probes, which address a machine by its IP."""
    statuses: tuple[int, ...] = (200,)
    """The statuses of a good answer."""

    @property
    def problems(self) -> tuple[int, ...]:
        """The statuses of the problems that it can have, for its description."""
        found = [400, 405, 406, 414, 421, 431, 500, 503] if not self.any_host else [400, 405, 406, 414, 431]
        found += [] if self.access is RouteAccess.PUBLIC else [401, 403, 404]
        found += [408, 409, 413, 415, 429] if self.writes else []
        found += [429] if self.streams else []
        found += [428] if self.creates_runs else []
        return tuple(sorted(found))

    @property
    def writes(self) -> bool:
        """True if it may change something."""
        return self.method != "GET"
