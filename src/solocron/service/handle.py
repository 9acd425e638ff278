"""`Service`: a request in, a response out. Adapters call its steps in order; it does no I/O but the client's.

    check -> find_caller -> admit -> (the adapter reads the body) -> answer

`handle` does all of them at once.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from solocron.client import Client
from solocron.clock import SystemClock
from solocron.errors import ConfigurationError, SolocronError
from solocron.service.api.events import subscription
from solocron.service.board.counting import FirstCount
from solocron.service.board.glance import Board
from solocron.service.board.pace import TellingPace
from solocron.service.board.watcher import Watcher
from solocron.service.bodies import LARGEST_BODY, read_body, read_form
from solocron.service.call import Answer, ApiCall, EventText, File, Redirect, ShownPage, Text, Values
from solocron.service.clients import ServiceClients
from solocron.service.codes import OneTimeCodes
from solocron.service.dashboard.looking import alone
from solocron.service.examination import Examination
from solocron.service.guard import LOOPBACK, Admission, Guard, check_csrf
from solocron.service.health import Readiness
from solocron.service.identity import KnownCaller, bearer, identify
from solocron.service.live import EVENTS, Subscription
from solocron.service.logins import Logins
from solocron.service.moments import moment, of_one_moment
from solocron.service.oidc import OidcVerifier
from solocron.service.pages.forms import ProblemPage
from solocron.service.pages.render import render as render_page
from solocron.service.pages.render import render_part
from solocron.service.parameters import read_query
from solocron.service.problems import TITLES, ProblemError, bug, problem_of, render
from solocron.service.reads import Reads
from solocron.service.request import RequestHead, Response, sealed, tag_of
from solocron.service.roles import Identity, RouteAccess
from solocron.service.route import Feature, Route
from solocron.service.routes import API, ROUTES, allowed_methods
from solocron.service.shared_parts import SharedParts
from solocron.service.shown import scrubbed_json
from solocron.service.ticking import Ticking
from solocron.service.tokens import Tokens
from solocron.service.writes import Writes
from solocron.stores.contract import Check
from solocron.telemetry.families import exposition
from solocron.telemetry.fleet import FleetMetrics
from solocron.views import to_json

__all__ = ["Service"]

log = logging.getLogger("solocron.service")
_CHANGES_ANYWHERE = re.compile(rb'"lease_left_s":[^,}]*')
_CHANGES_ALWAYS = ("as_of", "asked", "check", "checked_at", "checked_from", "now", "since", "until")
"""What differs between two equal answers, at any depth or as a key of the answer itself: not part of the tag."""
_HTML = "text/html; charset=utf-8"
_NOW = "Solocron-Now"
"""The header that sets the clock of an open page."""


class Service:
    """The routes of one namespace.

    Without `tokens` every caller is a stranger, unless the adapter knows better. `checks_host` is False where the host
    application has checked the name. `namespaces` are those that are served together, with the path of each.
    """

    def __init__(
        self,
        clients: Client | ServiceClients,
        *,
        tokens: Tokens | None = None,
        allowed_hosts: Collection[str] = LOOPBACK,
        checks_host: bool = True,
        read_only: bool = False,
        edit: bool = False,
        live: bool = True,
        values: Values = "operate",
        ticking: Ticking | None = None,
        oidc: OidcVerifier | None = None,
        codes: OneTimeCodes | None = None,
        node_is_ready: Callable[[], bool] | None = None,
        own_checks: Callable[[], Sequence[Check]] = tuple,
        namespaces: Mapping[str, str] = MappingProxyType({}),
        table: tuple[Route, ...] = ROUTES,
        clock: SystemClock | None = None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock = clock or SystemClock()
        given = clients if isinstance(clients, ServiceClients) else ServiceClients.of(clients)
        self._clients = replace(given, reading=of_one_moment(given.reading))
        self._tokens = tokens
        features = {Feature.TICK: ticking is not None, Feature.CODE: codes is not None, Feature.LIVE: live}
        self._table = table = tuple(one for one in table if one.needs is None or features[one.needs])
        self._live = live
        self._values: Values = values
        self._ticking = ticking
        self._oidc = oidc
        self._reads = Reads(self._clients.reading)
        self.watcher = Watcher(self._clients.reading, clock=self._clock.boot)
        """What all who look at this service share; an adapter lets it look."""
        self.pace = TellingPace(clock=self._clock.boot)
        """How often those are told who have pages open."""
        self._read_only = read_only
        count = FirstCount(
            self._clients.reading,
            clock=self._clock.boot,
            ready=lambda: self.watcher.changes.add((), everything=True),
        )
        self._board = Board(self._reads, count, clock=self._clock.boot, position=lambda: self.watcher.changes.last)
        self._parts = SharedParts(clock=self._clock.boot, position=lambda: self.watcher.changes.last)
        self._namespaces = namespaces
        self._writes = Writes(self._clients.writing)
        self._logins = Logins(tokens, codes=codes, clock=self._clock, pause=pause, may_enter=self._may_enter_any)
        self._readiness = Readiness(
            lambda: self._clients.reading().store.clock(), node=node_is_ready, clock=self._clock.boot
        )
        self._metrics = FleetMetrics(self._clients.reading, lambda: self.namespace, clock=self._clock.boot)
        self._examination = Examination(
            self._clients.reading, own=own_checks, clock=self._clock.boot, wall=self._clock.wall
        )
        self._guard = Guard(
            allowed_hosts=allowed_hosts,
            checks_host=checks_host,
            read_only=read_only,
            edit=edit,
            table=table,
            namespace=lambda: self.namespace,
            clock=self._clock.boot,
        )

    @property
    def namespace(self) -> str:
        """The name of its namespace; nothing is opened for it."""
        return self._clients.writing().store.namespace

    def _may_enter_any(self, identity: Identity) -> bool:
        return any(map(identity.may_enter, self._served))

    @property
    def _served(self) -> Mapping[str, str]:
        return self._namespaces or {self.namespace: ""}

    def _seen_by(self, caller: KnownCaller | None, head: RequestHead) -> dict[str, str]:
        """Return the addresses of the namespaces that a caller may see, by name."""
        if caller is None:
            return {}
        found = {name: f"{head.site}{path}/" for name, path in self._served.items()}
        return {name: address for name, address in found.items() if caller.identity.may_enter(name)}

    def handle(self, head: RequestHead, body: bytes = b"") -> Response:
        """Answer a whole request."""
        opened = self.check(head)
        if isinstance(opened, Response):
            return opened
        caller = self.find_caller(head)
        if caller is None and self.awaits_proof(head):
            caller = self.prove(head)
        admission = self.admit(head, caller)
        return admission if isinstance(admission, Response) else self.answer(admission, body)

    def check(self, head: RequestHead) -> Response | None:
        """Return the refusal of a request by its form or its host; None if it may go on."""
        try:
            self._guard.check_door(head)
        except ProblemError as problem:
            return self.refused(head, problem)
        return None

    def is_public(self, head: RequestHead) -> bool:
        """Return whether a request needs no caller."""
        return self._guard.is_public(head)

    def find_caller(self, head: RequestHead) -> KnownCaller | None:
        """Return the caller by its token or cookie; None if it is not known."""
        if self.is_public(head):
            return None
        try:
            return identify(head, self._tokens, now=self._clock.wall())
        except ConfigurationError as error:  # the token file was damaged while we run: no caller is known
            log.error("no caller is let in: %s", error)
            return None

    def awaits_proof(self, head: RequestHead) -> bool:
        """Return whether an unknown caller may prove by OIDC who it is; `prove` may wait for the issuer."""
        return self._oidc is not None and bearer(head) is not None and self._guard.access(head) is RouteAccess.TICK

    def prove(self, head: RequestHead) -> KnownCaller | None:
        """Return the caller that an OIDC token proves."""
        token = bearer(head)
        return None if self._oidc is None or token is None else self._oidc.find(token)

    def close(self) -> None:
        """End the connections to the store; the next request makes new ones."""
        self._board.close()
        self._clients.close()

    def admit(self, head: RequestHead, caller: KnownCaller | None) -> Admission | Response:
        """Let a request through, or return the response that ends it here."""
        methods = allowed_methods(head.path, self._table)
        if head.method == "OPTIONS" and caller is not None and methods and caller.identity.may_enter(self.namespace):
            return sealed(head, Response(status=204, headers=(("Allow", ", ".join(methods)),)))
        elsewhere = self._elsewhere(head, caller)
        if elsewhere is not None:
            return sealed(head, Response(status=303, headers=(("Location", elsewhere),)))
        try:
            return self._guard.admit(head, caller)
        except ProblemError as problem:
            return self.refused(head, problem)

    def _elsewhere(self, head: RequestHead, caller: KnownCaller | None) -> str | None:
        """Return the first namespace of a person who comes to the overview of one that is not theirs."""
        if caller is None or head.path != "/" or not _is_browsing(head) or caller.identity.may_enter(self.namespace):
            return None
        return next(iter(self._seen_by(caller, head).values()), None)

    def subscribe(self, admission: Admission) -> tuple[Subscription, Response]:
        """Return what a client wants to hear of, and the head of its stream; raise a ProblemError if it cannot be."""
        head, given = admission.head, read_query(admission.head.query, admission.route.parameters)
        wanted = subscription(given, head)
        start = Response(status=200, kind=EVENTS, headers=(("X-Accel-Buffering", "no"),), endless=True)
        return wanted, sealed(head, start)

    def answer(self, admission: Admission, body: bytes) -> Response:
        """Carry out a request that was admitted."""
        head, begun = admission.head, time.thread_time()
        try:
            response = sealed(head, self._respond(admission, body))
            if admission.route.writes:
                self._parts.forget()
                self._board.forget()
                self.watcher.hasten()
            return response
        except ProblemError as problem:
            return self.refused(head, problem)
        except SolocronError as error:
            return self.refused(head, problem_of(error))
        except Exception:  # noqa: BLE001 - logged with its trace; the caller gets a constant text
            return self.failed(head)
        finally:
            if _is_of_open_page(head):
                self.pace.spent(time.thread_time() - begun)

    def failed(self, head: RequestHead) -> Response:
        """Return the response for the exception being handled, a bug of ours.

        Its text may hold anything, so the log gets it and the caller a constant one.
        """
        log.exception("request %s failed", head.id)
        return self.refused(head, bug())

    def refused(self, head: RequestHead, problem: ProblemError) -> Response:
        """Return a problem as the whole response: for a person a page, or the form of a login; else as JSON."""
        if not _is_browsing(head):
            return sealed(head, render(problem, request=head.id))
        if problem.status == 401 and head.reads and self._tokens is not None:
            wanted = quote(f"{head.base}{head.path}" + (f"?{head.query}" if head.query else ""), safe="")
            to = f"{head.base}/login" + (f"?wanted={wanted}" if 0 < len(wanted) <= 512 else "")
            return sealed(head, Response(status=303, headers=(("Location", to),)))
        page = ProblemPage(status=problem.status, title=TITLES[problem.status], detail=problem.detail, request=head.id)
        html = render_page(page, alone(head)).encode()
        return sealed(head, Response(status=problem.status, body=html, kind=_HTML, headers=problem.headers))

    def _respond(self, admission: Admission, body: bytes) -> Response:
        route, head = admission.route, admission.head
        if len(body) > LARGEST_BODY:
            raise ProblemError(413, f"A body may have {LARGEST_BODY} bytes. Nothing was done.")
        given: dict[str, Any] = {}
        key = head.header("idempotency-key") or ""
        if route.form:
            given = read_form(body, route.fields)
            check_csrf(admission.caller, given.pop("csrf"))
            key = given.pop("key", None) or ""
        elif route.writes and not route.ignores_body:
            given = read_body(body, route.fields)
        if route.writes and route.access is RouteAccess.OPERATE:
            self._clients.reading()  # raises where nothing is: a write would make it
        call = ApiCall(
            head=head,
            caller=admission.caller,
            names=admission.found.names,
            given=read_query(head.query, route.parameters, from_form=route.page),
            body=given,
            path=route.path,
            key=key,
            writes=self._writes,
            watcher=self.watcher,
            logins=self._logins,
            reads=self._reads,
            is_ready=self._readiness.is_ready,
            metrics=lambda: exposition(self._metrics.families()),
            examination=self._examination,
            ticking=self._ticking,
            board=self._board,
            values=self._values,
            read_only=self._read_only,
            namespaces=self._seen_by(admission.caller, head),
            live=self._live,
            is_form=route.form,
        )
        if route.shared and _is_of_open_page(head):
            part = (head.base, head.path, head.query, call.operates, call.sees_values)
            return _aged(*self._parts.get(part, lambda: self._answered(route, call)))
        return self._answered(route, call)

    def _answered(self, route: Route, call: ApiCall) -> Response:
        """Let the handler of a route answer; whatever it reads twice, and for a page the board knows, is read once."""
        if route.writes:
            return _response(route.handler(call), call.head)
        with moment(self._board.known() if route.page else {}):
            return _response(route.handler(call), call.head)


def _is_of_open_page(head: RequestHead) -> bool:
    """Return whether a page that is open asks for its main part, because it was told of a change."""
    return head.header("solocron-part") == "main"


def _is_browsing(head: RequestHead) -> bool:
    """Return whether a person looks at a page: the API returns no HTML."""
    return "text/html" in (head.header("accept") or "") and not head.path.startswith(f"{API}/")


def _response(value: Any, head: RequestHead) -> Response:
    if isinstance(value, ShownPage):
        return _shown(value, head)
    if isinstance(value, File):
        forever = (("Cache-Control", "public, max-age=31536000, immutable"),)
        return Response(status=200, body=value.content, kind=value.kind, headers=forever, tag=tag_of(value.content))
    if isinstance(value, Redirect):
        return Response(status=303, headers=(("Location", value.to), *value.headers))
    if isinstance(value, EventText):
        return Response(status=200, body=value.content, kind=EVENTS)
    if isinstance(value, Text):
        body = value.content.encode("utf-8", "backslashreplace")
        return Response(
            status=value.status, body=body, kind=value.kind, tag=None if value.status != 200 else tag_of(body)
        )
    answer = value if isinstance(value, Answer) else Answer(value)
    plain = to_json(answer.value)
    body, lasting = _written(plain)
    if b"://" in body:  # seldom: to look through every text of a long answer takes as long as to write it
        body, lasting = _written(scrubbed_json(plain))
    tag = tag_of(lasting) if answer.status == 200 else None
    return Response(status=answer.status, body=body, headers=answer.headers, tag=tag)


def _written(plain: Any) -> tuple[bytes, bytes]:
    """Return a JSON value as a body, and what of it lasts: without the parts that differ between two equal answers.

    Each part is written once: an answer may have a thousand entries.
    """
    if not isinstance(plain, dict):
        body = _dumped(plain)
        return body, _CHANGES_ANYWHERE.sub(b"", body)
    parts = {key: _dumped(key) + b":" + _dumped(item) for key, item in plain.items()}
    lasting = b",".join(part for key, part in parts.items() if key not in _CHANGES_ALWAYS)
    return b"{" + b",".join(parts.values()) + b"}", _CHANGES_ANYWHERE.sub(b"", lasting)


def _shown(screen: ShownPage, head: RequestHead) -> Response:
    part = _is_of_open_page(head)
    html = (render_part if part else render_page)(screen.page, screen.frame).encode("utf-8", "backslashreplace")
    tag = None
    if screen.status == 200 and screen.seen is not None:
        tag = tag_of(f"{part} {screen.frame.role} {screen.seen}".encode("utf-8", "backslashreplace"))
    now = (_NOW, screen.frame.reading.now.isoformat())
    return Response(status=screen.status, body=html, kind=_HTML, headers=(now,), tag=tag)


def _aged(response: Response, age: float) -> Response:
    """Return a response that was made a while ago with the present time: the page goes on from it."""
    made = response.header(_NOW)
    if made is None:
        return response
    now = (_NOW, (datetime.fromisoformat(made) + timedelta(seconds=age)).isoformat())
    return replace(response, headers=(now, *(one for one in response.headers if one[0] != _NOW)))


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
