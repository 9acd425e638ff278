"""The guard: what every request must pass before anything is read or asked. What is not allowed here is refused.

The order matters. Form and host come first, because a page of another site can make a browser send anything to a name
that it controls. Then the caller and its namespaces, then the route: a stranger learns nothing about which paths
exist. Only then the checks of a write, and the body last of all.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from solocron.errors import ConfigurationError
from solocron.service.bodies import LARGEST_BODY
from solocron.service.identity import KnownCaller, Via
from solocron.service.problems import ProblemError
from solocron.service.rates import RateLimit
from solocron.service.request import RequestHead
from solocron.service.roles import RouteAccess, is_allowed
from solocron.service.route import Route
from solocron.service.routes import ROUTES, Match, allowed_methods, match

__all__ = ["LOOPBACK", "Admission", "Guard", "check_csrf", "check_hosts"]

LOOPBACK = frozenset(["localhost", "127.0.0.1", "[::1]"])
_LONGEST_PATH = 2048
_LARGEST_HEADERS = 16 * 1024
_ONCE = (
    *("host", "authorization", "content-type", "content-length", "origin", "sec-fetch-site"),
    *("idempotency-key", "solocron-csrf"),
)
"""Headers of which two are refused: the service and a proxy before it might each look at another one."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::[0-9]{1,5})?")
_NAMED = re.compile(r"/ns/([^/]+)")
_KINDS = frozenset(
    [
        *("*/*", "application/*", "application/json", "application/problem+json"),
        *("text/*", "text/html", "text/plain", "text/event-stream"),
    ]
)
_CREATED_A_MINUTE = 60
_WRITES_A_MINUTE = 30


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that may be carried out once its body was read."""

    head: RequestHead
    caller: KnownCaller | None
    found: Match

    @property
    def route(self) -> Route:
        """The row of the table."""
        return self.found.route


class Guard:
    """Decides on a request by its head alone. Every refusal is a ProblemError."""

    def __init__(
        self,
        *,
        allowed_hosts: Collection[str] = LOOPBACK,
        checks_host: bool = True,
        read_only: bool = False,
        edit: bool = False,
        table: Sequence[Route] = ROUTES,
        namespace: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self._checks_host = checks_host
        self._read_only = read_only
        self._edit = edit
        self._table = table
        self._namespace = namespace
        self._created = RateLimit(_CREATED_A_MINUTE, clock=clock)
        self._written = RateLimit(_WRITES_A_MINUTE, clock=clock)

    def check_door(self, head: RequestHead) -> None:
        """Refuse a request by its form or its host, before the caller is looked at."""
        if len(head.path) + len(head.query) > _LONGEST_PATH:
            raise ProblemError(414, f"path and query may have {_LONGEST_PATH} characters.")
        if sum(len(name) + len(value) for name, value in head.headers) > _LARGEST_HEADERS:
            raise ProblemError(431, f"the headers may have {_LARGEST_HEADERS} bytes.")
        if not head.path.startswith("/") or not head.path.isascii() or not head.path.isprintable():
            raise ProblemError(400, "the path must be percent-encoded.", code="InvalidError")
        for name in _ONCE:
            if head.count(name) > 1:
                raise ProblemError(400, f"the header {name} is there twice.", code="InvalidError")
        found = match(head.path, head.method, self._table)
        free = not self._checks_host or (found is not None and found.route.any_host)
        if not free and _host_name(head.header("host")) not in self._hosts:
            raise ProblemError(
                421,
                "this host is not on the list of the service: --allowed-host, or allowed_hosts= where it is mounted.",
            )

    def is_public(self, head: RequestHead) -> bool:
        """Return whether a request needs no caller."""
        return self.access(head) is RouteAccess.PUBLIC

    def access(self, head: RequestHead) -> RouteAccess | None:
        """Return what the route of a request asks for; None if there is none."""
        found = match(head.path, head.method, self._table)
        return None if found is None else found.route.access

    def admit(self, head: RequestHead, caller: KnownCaller | None) -> Admission:
        """Let a request through, or refuse it; `caller` is None if it is not known."""
        found = match(head.path, head.method, self._table)
        if caller is None and (found is None or found.route.access is not RouteAccess.PUBLIC):
            raise ProblemError(
                401,
                "Send a token: Authorization: Bearer solocron_... `solocron token new` makes one.",
                headers=[("WWW-Authenticate", 'Bearer realm="solocron"')],
            )
        if caller is not None and not self._may_enter(caller, head):
            raise ProblemError(403, "This caller may not see this namespace. Nothing was done.")
        if found is None:
            self._refuse_path(head)
            raise AssertionError
        route = found.route
        if caller is not None and not is_allowed(caller.identity.role, route.access):
            who = "user" if caller.via is Via.HOST else "token"
            raise ProblemError(403, f"The role of this {who} is too small for it.")
        if not _takes_our_kinds(head.header("accept")):
            raise ProblemError(406, "The answers are application/json, text/html, text/plain or text/event-stream.")
        if route.writes:
            self._check_write(head, caller, route)
        return Admission(head, caller, found)

    def _may_enter(self, caller: KnownCaller, head: RequestHead) -> bool:
        """Return whether a caller may see the namespace, also one that the path names and that is not served."""
        if caller.identity.namespaces is None:
            return True
        named = _NAMED.match(head.path)
        return caller.identity.may_enter(self._namespace() if named is None else unquote(named[1]))

    def _refuse_path(self, head: RequestHead) -> None:
        methods = allowed_methods(head.path, self._table)
        if methods:
            raise ProblemError(405, f"{head.path} has {', '.join(methods)}.", headers=[("Allow", ", ".join(methods))])
        raise ProblemError(404, "There is nothing at this path.")

    def _check_write(self, head: RequestHead, caller: KnownCaller | None, route: Route) -> None:
        if self._read_only and route.access is RouteAccess.OPERATE:
            raise ProblemError(403, "This service only shows; it was started read-only.")
        if route.edits and not self._edit:
            raise ProblemError(403, "Jobs are not edited here; edit=True, or --edit, allows it.")
        _check_origin(head, caller)
        kind = (head.header("content-type") or "").partition(";")[0].strip().lower()
        wanted = "application/x-www-form-urlencoded" if route.form else "application/json"
        if kind != wanted and not route.ignores_body:
            raise ProblemError(415, f"Send {wanted}. Nothing was done.")
        if not route.form:  # a form has it as a field
            check_csrf(caller, head.header("solocron-csrf"))
        _check_length(head.header("content-length"))
        if route.creates_runs and not route.form:
            _check_key(head.header("idempotency-key"))
        wait = (self._created if route.creates_runs else self._written).wait(
            caller.identity.name if caller is not None else head.address or ""
        )
        if wait:
            raise ProblemError(
                429, "So much is not allowed within a minute. Nothing was done.", headers=[("Retry-After", str(wait))]
            )


def check_hosts(names: Collection[str], what: str, untouched: str) -> frozenset[str]:
    """Return the names of hosts as they are compared; refuse one that no request could bear."""
    for name in names:
        if not isinstance(name, str) or _host_name(name) != name.lower():
            raise ConfigurationError(
                f"{what}: {name!r:.80} is not a host such as jobs.example.com, without scheme, port or path. "
                f"{untouched}"
            )
    if not names:
        raise ConfigurationError(f"{what}: the list of allowed hosts is empty, so nothing could be asked. {untouched}")
    return frozenset(name.lower() for name in names)


def _takes_our_kinds(accept: str | None) -> bool:
    """Return whether a client takes any kind that we have. Which one a route has, its description says."""
    if accept is None or not accept.strip():
        return True
    return any(one.partition(";")[0].strip().lower() in _KINDS for one in accept.split(","))


def _host_name(host: str | None) -> str:
    """Return the host without its port: which port a service has is not a secret, its names are a choice."""
    found = _HOST.fullmatch((host or "").lower())
    return "" if found is None else found[1]


def _check_origin(head: RequestHead, caller: KnownCaller | None) -> None:
    """Refuse a write that a page of another origin makes a browser send."""
    site, origin = head.header("sec-fetch-site"), head.header("origin")
    if site is not None:
        good = site == "same-origin"
    elif origin is not None:
        good = origin == head.origin
    else:  # not a browser, so there is no cookie that another page could use
        good = caller is not None and caller.via is Via.BEARER
    if not good:
        raise ProblemError(403, "It comes from a page of another origin. Nothing was done.")


def check_csrf(caller: KnownCaller | None, shown: str | None) -> None:
    """Refuse a write by cookie that does not show what only a page of the same login can know."""
    if caller is None or caller.via is not Via.COOKIE:
        return
    if caller.csrf is None or not hmac.compare_digest((shown or "").encode(), caller.csrf.encode()):
        raise ProblemError(403, "The page is of another login. Load it again. Nothing was done.")


def _check_length(given: str | None) -> None:
    if given is not None and (not given.isascii() or not given.isdigit()):
        raise ProblemError(400, "Content-Length is not a number.", code="InvalidError")
    if given is not None and (len(given) > 9 or int(given) > LARGEST_BODY):
        raise ProblemError(413, f"A body may have {LARGEST_BODY} bytes. Nothing was done.")


def _check_key(key: str | None) -> None:
    if key is None:
        raise ProblemError(428, "Send an Idempotency-Key, so that a repeated request is the same run.")
    if not 0 < len(key) <= 256 or not key.isprintable():
        raise ProblemError(400, "Idempotency-Key: 1 to 256 printable characters.", code="InvalidError")
