"""A tick by HTTP: only with a right proof, one at a time, and the same through every adapter."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from solocron import ConfigurationError, Scheduler, StoreUnavailable
from solocron.clock import to_us
from solocron.http_tick import TickEndpoint, TickResponse, oidc, signed
from solocron.stores.memory import MemoryStore, World
from solocron.telemetry.messages import signature

SECRET = "a secret of twenty letters"
MINUTE = 60_000_000


@pytest.fixture
def store() -> MemoryStore:
    from datetime import UTC, datetime

    noon = to_us(datetime(2027, 1, 4, 12, tzinfo=UTC))
    return MemoryStore(world=World(clock=lambda: noon))


@pytest.fixture
def scheduler(store: MemoryStore) -> Iterator[Scheduler]:
    made = Scheduler(store, enabled=True)
    made.every("1m", name="collect", catch_up="all")(lambda: None)
    made.tick()
    store.shift_clock(2 * MINUTE)
    yield made
    made.stop()


@pytest.fixture
def endpoint(scheduler: Scheduler) -> TickEndpoint:
    return TickEndpoint(scheduler, verify=signed(SECRET))


def proof(body: bytes = b"", *, secret: str = SECRET, age: int = 0) -> dict[str, str]:
    return {"Solocron-Signature": signature(secret, int(time.time()) - age, body)}


def test_a_right_proof_ticks(endpoint: TickEndpoint) -> None:
    answer = endpoint.handle("POST", proof(b"x"), b"x")
    assert answer.status == 200
    assert [run["status"] for run in answer.json["runs"]] == ["succeeded", "succeeded"]
    assert (answer.json["failed"], answer.json["handed_over"]) == (0, 0)
    assert answer.json["next"] == "2027-01-04T12:03:00Z"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (dict, 401),
        (lambda: proof(b"x", secret="another secret of letters"), 403),
        (lambda: proof(b"x", age=600), 403),
        (lambda: proof(b"x", age=-600), 403),  # made now: minutes after the collection it would be of the present
        (lambda: proof(b"another body"), 403),
        (lambda: {"Solocron-Signature": "t=soon,v1=no"}, 403),
        (lambda: {"Authorization": "Bearer x"}, 401),
    ],
    ids=["none", "wrong", "old", "from the future", "of another request", "unreadable", "of another kind"],
)
def test_without_one_nothing_is_looked_at(
    endpoint: TickEndpoint, scheduler: Scheduler, headers: Callable[[], dict[str, str]], status: int
) -> None:
    assert endpoint.handle("POST", headers(), b"x").status == status
    assert scheduler.runs() == []


def test_only_post_ticks(endpoint: TickEndpoint, scheduler: Scheduler) -> None:
    answer = endpoint.handle("GET", proof())
    assert (answer.status, answer.headers) == (405, {"Allow": "POST"})
    assert endpoint.handle("POST", proof(), b"x" * 70_000).status == 413
    assert scheduler.runs() == []


def test_two_at_once_are_one_pass_and_one_that_is_told_to_come_again(scheduler: Scheduler) -> None:
    begun, go = threading.Event(), threading.Event()

    @scheduler.every("1m", name="slow")
    def slow() -> None:
        begun.set()
        go.wait(20)

    scheduler.tick()
    scheduler.trigger("slow")
    endpoint, answers = TickEndpoint(scheduler, verify=lambda headers: True), list[TickResponse]()
    first = threading.Thread(target=lambda: answers.append(endpoint.handle("POST", {})))
    first.start()
    assert begun.wait(20)
    second = endpoint.handle("POST", {})
    go.set()
    first.join(20)
    assert (second.status, second.json["busy"], second.headers) == (202, True, {"Retry-After": "5"})
    assert answers[0].status == 200


def test_a_node_in_this_process_does_it_already(scheduler: Scheduler, endpoint: TickEndpoint) -> None:
    with scheduler:
        assert endpoint.handle("POST", proof()).status == 409


def test_a_store_that_is_away_lets_the_platform_come_again(
    scheduler: Scheduler, endpoint: TickEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(claim_for: float | None) -> None:
        raise StoreUnavailable("the store is away.")

    monkeypatch.setattr(scheduler, "_tick_once", away)
    answer = endpoint.handle("POST", proof())
    assert (answer.status, answer.headers) == (503, {"Retry-After": "5"})


def test_a_function_of_ones_own_may_judge_the_headers(scheduler: Scheduler, caplog: pytest.LogCaptureFixture) -> None:
    def is_cron(headers: Mapping[str, str]) -> bool:
        return headers["x-appengine-cron"] == "true"

    endpoint = TickEndpoint(scheduler, verify=is_cron)
    assert endpoint.handle("POST", {"X-Appengine-Cron": "true"}).status == 200
    assert endpoint.handle("POST", {"X-Appengine-Cron": "false"}).status == 403
    assert endpoint.handle("POST", {}).status == 403
    assert "verify= failed, so its caller may not tick" in caplog.text


def test_an_endpoint_without_a_proof_is_refused(scheduler: Scheduler) -> None:
    for make in (
        lambda: TickEndpoint(scheduler),
        lambda: TickEndpoint(scheduler, verify="secret"),
        lambda: signed("short"),
        lambda: oidc(issuer="https://issuer.example", audience="us"),
        lambda: oidc(issuer="https://issuer.example", audience="us", emails="a@b.example"),
        lambda: oidc(issuer="http://issuer.example", audience="us", subject="me"),
    ):
        with pytest.raises(ConfigurationError, match=r"Nothing is served\."):
            make()


def test_a_token_that_is_none_of_the_issuers_is_refused(scheduler: Scheduler) -> None:
    endpoint = TickEndpoint(
        scheduler, verify=oidc(issuer="https://issuer.example", audience="us", emails=["a@b.example"])
    )
    assert endpoint.handle("POST", {}).status == 401
    assert endpoint.handle("POST", {"Authorization": "Bearer not.a.token"}).status == 403
    assert scheduler.runs() == []


# --- adapters --------------------------------------------------------------------------------------------------------


def test_under_asgi(endpoint: TickEndpoint) -> None:
    sent: list[dict[str, Any]] = []
    incoming = [{"body": b"a", "more_body": True}, {"body": b"b"}]

    async def receive() -> dict[str, Any]:
        return incoming.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(name.lower().encode(), value.encode()) for name, value in proof(b"ab").items()]
    asyncio.run(endpoint.asgi({"type": "http", "method": "POST", "headers": headers}, receive, send))
    assert sent[0]["status"] == 200
    assert (b"content-type", b"application/json") in sent[0]["headers"]
    assert len(json.loads(sent[1]["body"])["runs"]) == 2


def test_under_wsgi(endpoint: TickEndpoint) -> None:
    started: list[Any] = []
    environ = {
        "REQUEST_METHOD": "POST",
        "HTTP_SOLOCRON_SIGNATURE": proof(b"ab")["Solocron-Signature"],
        "CONTENT_LENGTH": "2",
        "wsgi.input": io.BytesIO(b"ab"),
    }
    body = b"".join(endpoint.wsgi(environ, lambda *words: started.append(words)))
    assert started[0][0] == "200 OK"
    assert len(json.loads(body)["runs"]) == 2


def context(milliseconds: int) -> SimpleNamespace:
    return SimpleNamespace(get_remaining_time_in_millis=lambda: milliseconds)


@pytest.mark.parametrize("kind", ["function url", "api gateway", "schedule"])
def test_as_a_handler_of_lambda(endpoint: TickEndpoint, kind: str) -> None:
    body = base64.b64encode(b"ab").decode()
    headers = proof(b"ab")
    events: dict[str, dict[str, Any]] = {
        "function url": {"requestContext": {"http": {"method": "POST"}}, "headers": headers, "body": "ab"},
        "api gateway": {"httpMethod": "POST", "headers": headers, "body": body, "isBase64Encoded": True},
        "schedule": {"source": "aws.scheduler", "detail": {}},
    }
    answer = endpoint.aws_lambda(events[kind], context(60_000))
    if kind == "schedule":  # AWS has let it invoke the function; there is no HTTP
        assert len(answer["runs"]) == 2
        return
    assert answer["statusCode"] == 200
    assert len(json.loads(answer["body"])["runs"]) == 2
    refused = endpoint.aws_lambda({**events[kind], "headers": {}}, context(60_000))
    assert refused["statusCode"] == 401


def test_a_lambda_whose_time_is_nearly_over_claims_nothing(endpoint: TickEndpoint, scheduler: Scheduler) -> None:
    answer = endpoint.aws_lambda({"source": "aws.scheduler"}, context(9_000))
    assert answer["runs"] == []
    assert scheduler.runs() == []


def test_a_lambda_that_could_not_tick_raises_so_that_the_platform_repeats_it(
    endpoint: TickEndpoint, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(claim_for: float | None) -> None:
        raise StoreUnavailable("the store is away.")

    monkeypatch.setattr(scheduler, "_tick_once", away)
    with pytest.raises(RuntimeError, match="the store is away"):
        endpoint.aws_lambda({"source": "aws.scheduler"}, context(60_000))
