"""The dashboard behind Django's own users: staff look, superusers act, or what AUTHORIZE says.

Host names are checked by ALLOWED_HOSTS; there is no login of ours. The view is exempt from Django's CSRF middleware,
because the service has a stricter check of its own: a write must say that it comes from a page of this very origin
(`Sec-Fetch-Site`, or `Origin`), and one that says nothing is refused. Django's token would add the pages of sibling
hosts that CSRF_TRUSTED_ORIGINS names, and would have to be put into every page that the other mounts share.
"""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote

from django.conf import global_settings, settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import NoReverseMatch, is_valid_path, reverse
from django.utils.module_loading import import_string
from django.views.decorators.csrf import csrf_exempt

from solocron.django.database import in_tests
from solocron.django.project import ProjectScheduler, current
from solocron.errors import ConfigurationError
from solocron.scheduler.serving import clients_of
from solocron.service.handle import Service
from solocron.service.identity import KnownCaller, Via
from solocron.service.mounting import require_web
from solocron.service.problems import ProblemError
from solocron.service.request import RequestHead, Response, make_request_id
from solocron.service.roles import Identity, Role

__all__ = ["role_of", "serve"]

_OURS = ("login", "logout", "open")
_LONGEST_NAME = 200

_mutex = threading.Lock()
_services: list[tuple[ProjectScheduler, Service]] = []
"""The service of the present scheduler; a setting that changed makes another."""


@csrf_exempt  # type: ignore[untyped-decorator]
def serve(request: HttpRequest, path: str) -> HttpResponse:
    """Answer a request to the dashboard or to the API."""
    request.get_host()  # refused by ALLOWED_HOSTS here, where Django answers 400
    if path in _OURS:
        raise Http404
    role = role_of(request)
    if role is None and request.method in ("GET", "HEAD") and not _user(request).is_authenticated:
        return redirect_to_login(request.get_full_path(), _login_url())
    service = _service()
    head = _head(request, path)
    caller = None if role is None else KnownCaller(Identity(_name(request), role), Via.HOST)
    opened = service.check(head)
    if opened is not None:
        return _response(opened)
    if caller is None:
        return _response(service.refused(head, ProblemError(403, "This user may not look at Solocron.")))
    admission = service.admit(head, caller)
    if isinstance(admission, Response):
        return _response(admission)
    try:
        return _response(service.answer(admission, request.body if admission.route.writes else b""))
    finally:
        if in_tests():
            service.close()  # else the runner could not drop its database


def role_of(request: HttpRequest) -> Role | None:
    """Return what the user may do; None: nothing."""
    path = current().project.authorize
    if path is not None:
        said = import_string(path)(request)
        if said not in ("none", "read", "operate"):
            raise ConfigurationError(f"{path} returned {said!r:.40}; it must be 'none', 'read' or 'operate'.")
        return None if said == "none" else Role(said)
    user = _user(request)
    if not user.is_active or not (user.is_staff or user.is_superuser):
        return None
    return Role.OPERATE if user.is_superuser else Role.READ


def _login_url() -> str | None:
    """Return where a stranger logs in; None: at LOGIN_URL.

    A new project has not set it, and nothing at its default: there the admin's page, which it has, is the one.
    """
    if settings.LOGIN_URL == global_settings.LOGIN_URL and not is_valid_path(settings.LOGIN_URL):
        try:
            return str(reverse("admin:login"))
        except NoReverseMatch:
            return None
    return None


def _user(request: Any) -> Any:
    """Return the user, which Django's middleware adds to a request."""
    return request.user


def _name(request: HttpRequest) -> str:
    name = "".join(character for character in str(_user(request)) if character.isprintable())
    return name[:_LONGEST_NAME] or "?"


def _service() -> Service:
    scheduler = current()
    with _mutex:
        if not _services or _services[-1][0] is not scheduler:
            require_web("solocron.django.urls")
            made = Service(
                clients_of(scheduler._core),
                checks_host=False,
                live=False,
                node_is_ready=scheduler._node_is_ready,
                **scheduler.project.dashboard,
            )
            _services[:] = [(scheduler, made)]
        return _services[-1][1]


def _head(request: HttpRequest, path: str) -> RequestHead:
    whole = quote(request.path)
    below = quote(path)
    headers: Any = request.headers  # a mapping; Django ships no types
    return RequestHead(
        id=make_request_id(),
        method=request.method or "GET",
        path=f"/{below}",
        query=request.META.get("QUERY_STRING", ""),
        headers=tuple((name.lower(), str(value)) for name, value in headers.items()),
        address=request.META.get("REMOTE_ADDR"),
        secure=request.is_secure(),
        base=whole.removesuffix(below).rstrip("/"),
    )


def _response(answer: Response) -> Any:
    response = HttpResponse(answer.body, status=answer.status)
    del response.headers["Content-Type"]
    for name, value in answer.headers:
        response.headers[name] = value
    return response
