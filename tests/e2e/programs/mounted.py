"""Applications that mount the HTTP service: Starlette, Flask and Django, each below a path of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from solocron import Scheduler
from solocron.service import Identity, Role
from solocron.testing.fleet.leash import end_with_parent

scheduler = Scheduler(os.environ["SOLOCRON_STORE"], node="web", lease="1s")


@scheduler.every("1000d")
def hello() -> str:
    return "hello"


def who(headers: Mapping[str, str], cookies: Mapping[str, str]) -> Identity | None:
    """The application's own idea of its users."""
    return Identity("ana", Role.OPERATE) if cookies.get("session") == "ana" else None


async def who_awaited(headers: Mapping[str, str], cookies: Mapping[str, str]) -> Identity | None:
    return who(headers, cookies)


def starlette_app() -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    end_with_parent()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with scheduler:
            yield

    async def home(request: Request) -> PlainTextResponse:
        return PlainTextResponse("home")

    service = scheduler.asgi(auth=who_awaited, allowed_hosts=["localhost"])
    return Starlette(routes=[Route("/", home), Mount("/a/jobs", service)], lifespan=lifespan)


def flask_app() -> Any:
    from flask import Flask
    from werkzeug.middleware.dispatcher import DispatcherMiddleware

    end_with_parent()
    app = Flask(__name__)
    app.add_url_rule("/", view_func=lambda: "home")
    service = scheduler.wsgi(auth=who, allowed_hosts=["localhost"])
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/a/jobs": service})  # type: ignore[method-assign]
    return app


def django_app() -> Any:
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpRequest, HttpResponse
    from django.urls import path

    end_with_parent()

    def home(request: HttpRequest) -> HttpResponse:
        return HttpResponse("home")

    settings.configure(ALLOWED_HOSTS=["localhost"], ROOT_URLCONF=(path("", home),), SECRET_KEY="x")
    django, service = get_wsgi_application(), scheduler.wsgi(auth=who, allowed_hosts=["localhost"])

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        below = "/a/jobs"
        if (environ["PATH_INFO"] + "/").startswith(f"{below}/"):
            return service(
                {**environ, "SCRIPT_NAME": below, "PATH_INFO": environ["PATH_INFO"][len(below) :]}, start_response
            )
        return django(environ, start_response)

    return app
