"""Webhooks and pings against a real HTTPS server: signed, pinned to public addresses, bounded in time and tries."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from solocron import Backoff, InvalidError, MissingExtra, Run, Scheduler
from solocron.events import Event, Events
from solocron.telemetry import delivery, https
from solocron.telemetry.delivery import Deliveries
from solocron.telemetry.https import NotDelivered, Target
from solocron.telemetry.messages import Pings
from tests.unit.telemetry.https_server import Server, certificate, serving

SECRET = "a secret of the test's own"
pytestmark = pytest.mark.usefixtures("openssl")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def server(keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("SSL_CERT_FILE", str(keys[0]))
    monkeypatch.setattr(delivery, "_PAUSES", (0.0, 0.0))
    with serving(*keys) as made:
        yield made


def made(server: Server, **options: Any) -> tuple[Scheduler, list[Event]]:
    """A scheduler whose pool has no node, so that the first look raises an alarm."""
    scheduler = Scheduler("memory://", enabled=True, namespace="shop")
    options = {"every": "1ms", "patience": 0, "allow_private": True, **options}
    scheduler.alarms(**options)
    failed: list[Event] = []
    scheduler.on("not delivered", failed.append)
    scheduler.every("1h", name="job", pool="gpu")(lambda: None)
    return scheduler, failed


def test_an_alarm_is_posted_once_with_a_signature_that_proves_it(server: Server) -> None:
    scheduler, failed = made(server, webhook=f"{server.url}/hook?channel=1", secret=SECRET)
    scheduler.tick()
    server.wait()
    (posted,) = server.posted
    assert (posted.path, posted.headers["content-type"]) == ("/hook?channel=1", "application/json")
    assert posted.headers["host"] == f"localhost:{server.port}"
    told = json.loads(posted.body)
    assert {name: told[name] for name in ("event", "kind", "count", "again", "namespace", "text")} == {
        "event": "alarm", "kind": "no node", "count": 1, "again": False, "namespace": "shop",
        "text": "no node: gpu: no live node serves this pool, which has job",
    }  # fmt: skip
    (listed,) = told["alarms"]
    assert (listed["subject"], listed["since"]) == ("gpu", told["since"])
    assert told["since"].endswith("Z")
    assert posted.headers["solocron-id"] == told["id"]
    at, mac = (part.partition("=")[2] for part in posted.headers["solocron-signature"].split(","))
    signed = hmac.new(SECRET.encode(), f"{at}.".encode() + posted.body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(mac, signed)
    assert abs(int(at) - time.time()) < 60
    assert failed == []


def test_a_target_that_is_down_for_a_moment_gets_the_same_message_again(server: Server) -> None:
    server.statuses = [503, 429, 200]
    scheduler, failed = made(server, webhook=server.url, secret=SECRET)
    scheduler.tick()
    server.wait(3)
    assert len({posted.headers["solocron-id"] for posted in server.posted}) == 1
    assert failed == []


@pytest.mark.parametrize(
    ("statuses", "tries", "reason"),
    [([500], 3, "localhost returned 500"), ([403], 1, "localhost returned 403")],
)
def test_tries_are_bounded_and_what_was_refused_is_told(
    server: Server, statuses: list[int], tries: int, reason: str
) -> None:
    server.statuses = statuses
    scheduler, failed = made(server, webhook=server.url, secret=SECRET)
    scheduler.tick()
    assert len(server.posted) == tries
    assert [(event.what, event.reason) for event in failed] == [("webhook alarm: no node", reason)]


@pytest.mark.parametrize("how", ["no reply", "a gateway that does not know"])
def test_a_message_that_may_have_arrived_is_not_sent_again(
    server: Server, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A second one would wake a person twice; the store says that the first is in doubt."""
    monkeypatch.setattr(https, "TIMEOUT", 0.5)
    server.slow, server.statuses = how == "no reply", [504]
    scheduler, failed = made(server, webhook=server.url, secret=SECRET)
    scheduler.tick()
    assert len(server.posted) == 1
    reason = "localhost: it did not respond in time, and may have got it" if server.slow else "localhost returned 504"
    assert [event.reason for event in failed] == [f"{reason}; it is not sent again"]
    assert [(one.kind, one.delivery) for one in scheduler.open_alarms().messages] == [("no node", "doubtful")]


def test_what_became_of_a_message_is_in_the_store(server: Server) -> None:
    for status, outcome in ((403, "refused"), (200, "done")):
        server.statuses = [status]
        scheduler, _ = made(server, webhook=server.url, secret=SECRET)
        scheduler.tick()
        assert [one.delivery for one in scheduler.open_alarms().messages] == [outcome]


def test_a_redirect_is_not_followed(server: Server) -> None:
    server.statuses, server.location = [302], f"{server.url}/elsewhere"
    scheduler, failed = made(server, webhook=server.url, secret=SECRET)
    scheduler.tick()
    assert [posted.path for posted in server.posted] == ["/"]
    assert failed[0].reason == "localhost returned 302, and redirects are not followed"


def test_a_server_that_talks_slowly_is_cut_off(server: Server) -> None:
    server.slow = True
    since = time.monotonic()
    with pytest.raises(NotDelivered, match="localhost: it did not respond in time") as told:
        Target(server.url, "webhook", True).post(b"x", {}, timeout=0.5)
    assert told.value.again is True
    assert time.monotonic() - since < 10


def test_a_private_address_is_refused_before_anything_is_sent(server: Server) -> None:
    with pytest.raises(NotDelivered, match="which is not a public address") as told:
        Target(server.url, "webhook").post(b"x", {})
    assert told.value.again is False
    assert server.posted == []


def test_a_name_with_one_public_and_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(0, 0, 0, "", (address, 443)) for address in ("93.184.216.34", "10.0.0.7")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: answers)
    monkeypatch.setattr(socket, "create_connection", lambda *args, **options: pytest.fail("it connected"))
    with pytest.raises(NotDelivered, match=r"10\.0\.0\.7"):
        Target("https://example.org/", "webhook").post(b"x", {})


def test_the_address_that_was_checked_is_the_one_that_is_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that points elsewhere when it is asked a second time changes nothing."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: str, *args: Any, **options: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1" if host == "localhost" else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    Target(server.url, "webhook", True).post(b"x", {})
    assert asked.count("localhost") == 1


def test_a_certificate_without_a_trusted_issuer_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(NotDelivered, match="CERTIFICATE_VERIFY_FAILED"):
        Target(server.url, "webhook", True).post(b"x", {})
    assert server.posted == []


def test_pings_tell_start_success_and_failure(server: Server) -> None:
    scheduler = Scheduler("memory://", enabled=True, lease="3s")
    scheduler.alarms(
        pings={"job": f"{server.url}/ping/token?rid=1", "flaky": f"{server.url}/ping/flaky"}, allow_private=True
    )

    @scheduler.every("1h", name="job")
    def job() -> None:
        if len(server.posted) >= 2:
            raise ValueError("this time not")

    @scheduler.every("1h", name="other")
    def other() -> None: ...

    @scheduler.every("1h", name="flaky", retries=1, backoff=Backoff(first="1ms"))
    def flaky(run: Run) -> None:
        if run.attempt == 1:
            raise ValueError("the second attempt succeeds")

    with scheduler:
        for name, expected in (("job", 2), ("other", 0), ("job", 2), ("flaky", 2)):
            scheduler.wait(scheduler.trigger(name), "10s")
            server.wait(expected)
    assert [posted.path.partition("?")[0] for posted in server.posted] == [
        "/ping/token/start", "/ping/token", "/ping/token/start", "/ping/token/fail",
        "/ping/flaky/start", "/ping/flaky",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "facts", "sent"),
    [
        ("started", {"first": True}, ["/start"]),
        ("started", {"first": False}, []),
        ("finished", {"outcome": "failed", "final": False}, []),
        ("finished", {"outcome": "failed", "final": True}, ["/fail"]),
        ("finished", {"outcome": "succeeded", "final": True}, [""]),
        ("finished", {"outcome": "handed_over", "final": True}, [""]),
        ("finished", {"outcome": "cancelled", "final": True}, []),
        ("taken over", {"runs": ({"final": False}, {"final": True})}, ["/fail"]),
    ],
)
def test_a_ping_tells_of_a_run_and_not_of_its_attempts(name: str, facts: dict[str, Any], sent: list[str]) -> None:
    """A run that fails and succeeds with its next attempt used to wake a person."""
    posted: list[str] = []

    class Url:
        def post(self, body: bytes, headers: dict[str, str], *, below: str) -> None:
            posted.append(below)

    deliveries = Deliveries(Events())
    Pings({"job": cast(Target, Url())}, deliveries)(Event(name, {"job": "job", **facts}))
    assert deliveries.close()
    assert posted == sent


def test_apprise_is_handed_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real package is an extra that is not installed here: a stand-in with its two methods takes its place."""
    sent: list[dict[str, str]] = []
    stand_in = ModuleType("apprise")

    class Apprise:
        def add(self, url: str) -> bool:
            return url.startswith("mailto:")

        def notify(self, **what: str) -> bool:
            sent.append(what)
            return len(sent) > 1

    stand_in.Apprise = Apprise  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "apprise", stand_in)
    scheduler = Scheduler("memory://", enabled=True)
    with pytest.raises(InvalidError, match="does not understand URL 1 of 1"):
        scheduler.alarms(notify="nonsense")
    scheduler.alarms(every="1ms", patience=0, notify=["mailto:a@example.org", "mailto:b@example.org"])
    scheduler.every("1h", name="job", pool="gpu")(lambda: None)
    scheduler.tick()
    one = {"title": "solocron alarm", "body": "no node: gpu: no live node serves this pool, which has job"}
    assert sent == [one, one], "one for each target, and none again: the one that failed may have arrived"
    assert [message.delivery for message in scheduler.open_alarms().messages] == ["done"]


def test_without_apprise_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(MissingExtra, match=r"solocron\[notify\]"):
        Scheduler("memory://", enabled=True).alarms(notify="mailto:a@example.org")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"webhook": "http://example.org", "secret": SECRET}, "is not an https URL"),
        ({"webhook": "https://", "secret": SECRET}, "is not an https URL"),
        ({"webhook": "https://example.org:99999", "secret": SECRET}, "is not an https URL"),
        ({"webhook": 7, "secret": SECRET}, "is not an https URL"),
        ({"webhook": "https://u:p@example.org", "secret": SECRET}, "without user, password or fragment"),
        ({"webhook": "https://example.org/\n", "secret": SECRET}, "give a plain URL"),
        ({"webhook": "https://127.0.0.1/x", "secret": SECRET}, "which is not a public address"),
        ({"webhook": "https://[::1]/x", "secret": SECRET}, "which is not a public address"),
        ({"webhook": "https://[::ffff:10.0.0.1]/x", "secret": SECRET}, "which is not a public address"),
        ({"webhook": "https://[64:ff9b::a00:1]/x", "secret": SECRET}, "which is not a public address"),
        ({"webhook": "https://169.254.169.254/x", "secret": SECRET}, "which is not a public address"),
        ({"webhook": "https://example.org"}, "webhook= and secret= belong together"),
        ({"secret": SECRET}, "webhook= and secret= belong together"),
        ({"webhook": "https://example.org", "secret": "short"}, "shorter than 16 characters"),
        ({"pings": {"job": "http://example.org"}}, "is not an https URL"),
        ({"pings": {"a job": "https://example.org"}}, "cannot be used"),
        ({"failing": 0}, "from 1 up"),
        ({"late": 0}, "above zero"),
        ({"every": "soon"}, "is not a duration"),
        ({"settle": "soon"}, "is not a duration"),
        ({"settle": -1}, "settle"),
        ({"rate": "often"}, "rate: 'often' is not a rate; write it like \"10/m\".* Nothing was configured"),
        ({"rate": 3}, "is not a rate"),
        ({"missed_latest": "yes"}, "missed_latest='yes': give True or False. Nothing was configured"),
        ({"tier": "D"}, "is not known; choose A, B, C"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_configured(options: dict[str, Any], why: str) -> None:
    scheduler = Scheduler("memory://", enabled=True)
    with pytest.raises(InvalidError, match=why):
        scheduler.alarms(**options)
    scheduler.alarms()
    with pytest.raises(InvalidError, match="was called before"):
        scheduler.alarms()


def test_an_alarm_does_not_wait_behind_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ping target that is away takes half a minute for each of up to a thousand pings."""
    monkeypatch.setattr(delivery, "_LIMIT", 2)
    sent: list[str] = []
    begun, go_on = threading.Event(), threading.Event()
    deliveries = Deliveries(Events())

    def slow() -> None:
        begun.set()
        assert go_on.wait(30)

    deliveries.add("a ping that takes long", slow)
    assert begun.wait(30)
    for number in (1, 2):
        deliveries.add("a ping", partial(sent.append, f"ping {number}"))
    deliveries.add("an alarm", partial(sent.append, "alarm"), alarm="id")
    assert deliveries.outcome("id") is None, "it is still in line"
    go_on.set()
    assert deliveries.close()
    assert sent == ["alarm", "ping 1", "ping 2"]
    assert deliveries.outcome("id") == "done"


def test_a_queue_that_is_full_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_LIMIT", 0)
    events = Events()
    told: list[Event] = []
    events.on("not delivered", told.append)
    Deliveries(events).add("message", lambda: None)
    assert [event.reason for event in told] == ["0 messages wait already"]
