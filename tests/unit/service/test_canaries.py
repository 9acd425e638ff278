"""Secrets in every place where one can be: none of them is in an answer, a header, a page, a problem or a log line."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solocron import Scheduler
from solocron.client import Client
from solocron.service.clients import ServiceClients
from solocron.service.handle import Service
from solocron.service.pages.assets import static_hash
from solocron.service.roles import Role, is_allowed
from solocron.service.routes import API, ROUTES, Route
from solocron.stores.memory import MemoryStore
from solocron.stores.url import make_store
from tests.unit.service.kit import TOKENS, World, path_of, query_of, tokens

URL, PAYLOAD, RESULT, ERROR, NOTE, ENVIRONMENT = (
    f"canary-{place}-3f9a71c4" for place in ("url", "payload", "result", "error", "note", "environment")
)
CANARIES = (URL, PAYLOAD, RESULT, ERROR, NOTE, ENVIRONMENT, *TOKENS.values())
STATIC = {"digest": static_hash(), "file": "app.js"}
EVERY = pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")


def everything(reply: Any) -> str:
    headers = " ".join(f"{name}: {value}" for name, value in reply.response.headers)
    return f"{headers} {reply.response.body.decode('utf-8', 'replace')}"


def leaked(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


@pytest.fixture(scope="module")
def secrets() -> World:
    store = MemoryStore()
    scheduler = Scheduler(store, node="n")

    @scheduler.every("1000d", name="invoices", payload={"password": PAYLOAD, "nested": [{"api_key": PAYLOAD}]})
    def invoices() -> dict[str, str]:
        return {"access_token": RESULT}

    @scheduler.every("1000d", name="report")
    def report() -> None:
        raise ConnectionError(f"postgresql://shop:{ERROR}@db/shop does not answer")

    scheduler.tick()
    client = Client(store)
    run = client.trigger("invoices", note=f"see https://ana:{NOTE}@wiki/page")
    client.trigger("report")
    client.pause("report", note=f"see https://ana:{NOTE}@wiki/page")
    scheduler.tick()
    scheduler.calendar("bank", holidays={})
    with scheduler.lock("till"):
        pass
    names = {"job": "invoices", "run": run, "session": client.nodes(ended=True)[0].session, "calendar": "bank"}
    names |= {"lock": "till", "kind": "job", "document": "invoices", **STATIC}
    return World(None, Service(client, tokens=tokens(), edit=True, pause=lambda seconds: None), names)  # type: ignore[arg-type]


@EVERY
@pytest.mark.parametrize("role", [None, Role.READ, Role.OPERATE])
def test_no_secret_of_the_store_is_shown(
    secrets: World, route: Route, role: Role | None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", ENVIRONMENT)
    caplog.set_level(logging.DEBUG)
    if route.method == "GET":
        included = [one for one in route.parameters if one.name == "include"]
        more = [f"include={value}" for one in included for value in one.schema["items"]["enum"]]
        query = "&".join(filter(None, [query_of(route), *more]))
        reply = secrets.ask(path_of(route, secrets.names), role=role, query=query, accept="text/html, */*")
        if role is Role.OPERATE and route.path == f"{API}/jobs/{{job}}":
            assert reply.json["payload"] == {"password": "***", "nested": [{"api_key": "***"}]}
        if role is Role.OPERATE and route.path == f"{API}/runs/{{run}}":
            assert reply.json["result"] == {"access_token": "***"}
    else:
        reply = secrets.send(route, role=role)
    assert leaked(everything(reply)) == []
    assert leaked(caplog.text) == []


@EVERY
def test_no_secret_is_in_what_is_said_of_a_store_that_is_away(route: Route, caplog: pytest.LogCaptureFixture) -> None:
    if not is_allowed(Role.OPERATE, route.access) or route.streams:
        return
    caplog.set_level(logging.DEBUG)
    store = make_store(f"postgresql://shop:{URL}@127.0.0.1:1/shop")
    service = Service(ServiceClients.of(Client(store)), tokens=tokens(), edit=True, pause=lambda seconds: None)
    names = {"job": "a", "run": "a@0123456789abcdef", "session": "s", "calendar": "c", "lock": "l", "kind": "job"}
    reply = World(None, service, names | {"document": "d", **STATIC}).send(route, role=Role.OPERATE)  # type: ignore[arg-type]
    assert leaked(everything(reply)) == []
    assert leaked(caplog.text) == []
    assert reply.status != 500, reply.response.body


@pytest.mark.parametrize("route", [one for one in ROUTES if one.form and one.writes], ids=lambda route: route.path)
def test_no_form_can_be_filled_in_so_that_it_is_a_bug(secrets: World, route: Route) -> None:
    fields = st.sampled_from([one.name for one in route.fields] + ["csrf", "wibble"])
    filled = st.lists(st.tuples(fields, st.text(max_size=40)), max_size=6)

    @settings(max_examples=max(3, settings.default.max_examples // 20), suppress_health_check=list(HealthCheck))
    @given(body=st.one_of(st.binary(max_size=200), filled.map(_form)))
    def post(body: bytes) -> None:
        found = secrets.ask(
            path_of(route, secrets.names), method="POST", role=Role.OPERATE, body=body,
            content_type="application/x-www-form-urlencoded", sec_fetch_site="same-origin",
        )  # fmt: skip
        assert found.status < 500, found.response.body

    post()


def _form(pairs: list[tuple[str, str]]) -> bytes:
    return urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in pairs]).encode()
