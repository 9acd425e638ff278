"""A service over a seeded store in memory, and a caller for each role."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from solocron.client import Client
from solocron.service.codes import OneTimeCodes
from solocron.service.handle import Service
from solocron.service.pages.assets import static_hash
from solocron.service.request import RequestHead, Response, make_request_id
from solocron.service.roles import Role
from solocron.service.route import Route
from solocron.service.ticking import Ticking, TickResult
from solocron.service.tokens import FixedTokens, TokenEntry, hash_of, new_token
from tests.unit.cli.kit import Shop
from tests.unit.cli.kit import shop as open_shop

__all__ = ["TOKENS", "Reply", "World", "path_of", "query_of", "tokens", "world"]

TOKENS = {role: new_token() for role in Role}


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, with its JSON."""

    response: Response

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def json(self) -> Any:
        return json.loads(self.response.body)

    def header(self, name: str) -> str | None:
        return self.response.header(name)


@dataclass(frozen=True, slots=True)
class World:
    """A shop with jobs and runs, and the service that shows it."""

    shop: Shop
    service: Service
    names: dict[str, str] = field(default_factory=dict)
    """A name that exists, for each placeholder of a path."""

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        role: Role | None = Role.READ,
        query: str = "",
        host: str = "localhost:8700",
        body: Any = None,
        **headers: str,
    ) -> Reply:
        """Send a request; `role=None` sends no token."""
        return Reply(self.service.handle(self.head(path, method, role, query, host, body, headers), _encoded(body)))

    def head(
        self, path: str, method: str, role: Role | None, query: str, host: str, body: Any, headers: dict[str, str]
    ) -> RequestHead:
        given = [("host", host), *((name.replace("_", "-"), value) for name, value in headers.items())]
        if role is not None:
            given.append(("authorization", f"Bearer {TOKENS[role]}"))
        if body is not None and "content_type" not in headers:
            given.append(("content-type", "application/json"))
        return RequestHead(
            id=make_request_id(), method=method, path=path, query=query, headers=tuple(given), address="127.0.0.1"
        )

    def send(self, route: Route, *, role: Role | None = Role.READ, **more: str) -> Reply:
        """Send a request that is right in every respect but perhaps its role."""
        if not route.writes:
            return self.ask(path_of(route, self.names), role=role, query=query_of(route), **more)
        body = {one.name: _BODIES[one.name] for one in route.fields if one.required or one.name == "slot"}
        headers = {"idempotency_key": "k"} | more
        if route.form:
            sent = body | ({"jobs": "report"} if "jobs" in body else {})
            form = "&".join(f"{name}={quote(str(value))}" for name, value in sent.items()).encode()
            headers = {"content_type": "application/x-www-form-urlencoded", "sec_fetch_site": "same-origin"} | headers
            return self.ask(path_of(route, self.names), method=route.method, role=role, body=form, **headers)
        # What is removed would be missing in the tests that follow.
        names = self.names | ({"job": "nothing"} if route.method == "DELETE" else {})
        return self.ask(path_of(route, names), method=route.method, role=role, body=body, **headers)


def _encoded(body: Any) -> bytes:
    return b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()


def tokens() -> FixedTokens:
    """A token for each role."""
    return FixedTokens(*(TokenEntry(f"{role}-er", role, hash_of(token)) for role, token in TOKENS.items()))


def world(**options: Any) -> World:
    shop = open_shop()
    run = shop.ran("invoices")
    shop.ran("broken")
    shop.scheduler.calendar("bank", holidays={})
    lock = shop.scheduler.lock("till")
    with lock:
        pass
    client = Client(shop.store)
    session = client.nodes(ended=True)[0].session
    names = {"job": "invoices", "run": run, "session": session, "calendar": "bank", "lock": "till"}
    names |= {"kind": "job", "document": "invoices", "digest": static_hash(), "file": "style.css"}
    usual = {
        "pause": lambda seconds: None,
        "edit": True,
        "ticking": Ticking(TickResult, runs_node=lambda: False),
        "codes": OneTimeCodes(clock=time.monotonic),
    }
    return World(shop, Service(client, tokens=tokens(), **usual | options), names)


def path_of(route: Route, names: dict[str, str]) -> str:
    """Return a path of a route, with names that exist."""
    if "/vendor/" in route.path:
        names = names | {"file": "idiomorph.min.js"}
    return route.path.format(**{key: quote(value, safe="") for key, value in names.items()})


_BODIES = {
    "start": "2026-01-01T00:00:00Z",
    "end": "2026-01-02T00:00:00Z",
    "slot": "2026-01-01T00:00:00Z",
    "action": "pause",
    "token": "x",
    "jobs": ["report"],
    "reason": "stuck",
    "fence": 1,
    "key": "k",
    "typed": "till",
    "payload": {},
    "handler": "invoices",
    "schedule": "0 3 * * *",
    "what": "late",
    "until": (datetime.now(UTC) + timedelta(days=1)).isoformat(),
}
_REQUIRED = {
    "expression": "expression=*+*+*+*+*",
    "start": "start=2026-01-01T00:00:00Z",
    "at": "at=2026-01-01T00:00:00Z",
    "from": "from=2026-01-01T00:00:00Z",
    "to": "to=2026-01-02T00:00:00Z",
    "end": "end=2026-01-02T00:00:00Z",
    "code": "code=x",
}


def query_of(route: Route) -> str:
    """Return a query with the parameters that a route requires, and the instant that would else be now."""
    wanted = [one for one in route.parameters if one.required or one.name == "at"]
    if route.path == "/bulk" and not route.writes:
        return "job=report"
    return "&".join(_REQUIRED[one.name] for one in wanted)
