"""Streams: what a page hears, how many there may be, and that none of them keeps a server from stopping."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from solocron import Scheduler
from solocron.service.asgi import AsgiService
from solocron.service.handle import Service
from solocron.service.host_auth import HostAuthentication
from solocron.service.live import LiveTimes
from solocron.service.roles import Identity, Role
from solocron.service.wsgi import WsgiService
from solocron.stores.paging import live_sessions
from tests.unit.service.kit import TOKENS, World
from tests.unit.service.kit import world as open_world
from tests.unit.service.test_adapters import ask, ask_wsgi, scope

QUICK = LiveTimes(comment=0.02, pause=0.0, life=30.0, write=0.05, end=0.01)
PATIENT = LiveTimes(pause=0.0)
TOKEN = f"Bearer {TOKENS[Role.READ]}"
Event = tuple[str, dict[str, Any], str | None]


class Reader:
    """A client of a stream, which reads events until it leaves."""

    def __init__(self, app: AsgiService, *, topics: str = "runs", slow: bool = False, **headers: str) -> None:
        self._given = scope("/api/v1/events", query=f"topics={topics}", **{"authorization": TOKEN} | headers)
        self._app = app
        self._left = asyncio.Event()
        self._slow = slow
        self.sent: list[dict[str, Any]] = []
        self.heard = asyncio.Condition()
        self.task = asyncio.create_task(self._app(self._given, self._receive, self._send))

    async def _receive(self) -> Any:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        async with self.heard:
            self.sent.append(message)
            self.heard.notify_all()
        if self._slow and message["type"] == "http.response.body":
            await asyncio.Event().wait()  # its buffers are full

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def text(self) -> str:
        return b"".join(one.get("body", b"") for one in self.sent).decode()

    @property
    def events(self) -> list[Event]:
        return events_of(self.text)

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.events]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20), self.heard:
            await self.heard.wait_for(condition)

    async def leave(self) -> None:
        self._left.set()
        await self.task


def events_of(text: str) -> list[Event]:
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"]), fields.get("id")))
    return found


def running(story: Callable[[World, AsgiService], Awaitable[None]], *, times: LiveTimes = PATIENT, **more: Any) -> None:
    world = open_world()
    app = AsgiService(world.service, live=times, **more)
    try:
        asyncio.run(story(world, app))
    finally:
        app.close()


def test_a_page_is_greeted_with_the_time_and_told_what_has_changed() -> None:
    async def story(world: World, app: AsgiService) -> None:
        reader = Reader(app)
        await reader.until(lambda: reader.names == ["hello"])
        (_, hello, mark) = reader.events[0]
        assert hello["mark"] == mark
        assert (hello["answers"], hello["every_s"], hello["now"][-1]) == (True, None, "Z")
        run = await asyncio.to_thread(world.shop.ran, "invoices")
        app._watch.hasten()
        await reader.until(lambda: len(reader.events) > 1)
        name, data, id = reader.events[1]
        assert (name, data["topics"]) == ("changed", ["runs"])
        assert run in [one["run"] for one in data["runs"]]
        assert id not in (None, mark)
        await reader.leave()

    running(story)


def test_the_head_has_every_header_and_no_length() -> None:
    async def story(world: World, app: AsgiService) -> None:
        reader = Reader(app)
        await reader.until(lambda: len(reader.sent) > 1)
        headers = {name.decode().lower(): value.decode() for name, value in reader.sent[0]["headers"]}
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-length" not in headers
        assert {"content-security-policy", "cache-control", "solocron-request"} <= set(headers)
        await reader.leave()

    running(story)


def test_a_client_that_comes_again_hears_what_it_missed_or_that_it_must_reload() -> None:
    async def story(world: World, app: AsgiService) -> None:
        first = Reader(app)
        await first.until(lambda: first.names == ["hello"])
        last = first.events[0][2] or ""
        await first.leave()
        await asyncio.to_thread(world.shop.ran, "invoices")
        await asyncio.to_thread(world.service.watcher.look, at_once=True)
        second, third = Reader(app, last_event_id=last), Reader(app, last_event_id="other-1")
        await second.until(lambda: len(second.events) == 2)
        await third.until(lambda: len(third.events) == 2)
        assert second.names == ["hello", "changed"]
        assert third.names == ["hello", "gap"]
        await second.leave()
        await third.leave()

    running(story)


def test_a_wrong_topic_is_400_and_says_which_there_are() -> None:
    async def story(world: World, app: AsgiService) -> None:
        for wrong in ("tea", "job:", "job:%20", "runs,,nodes", "runs,tea"):
            status, _, body = await ask(app, scope("/api/v1/events", query=f"topics={wrong}", authorization=TOKEN))
            assert status == 400, wrong
            assert b"runs, nodes, alarms, jobs, audit, accounting or job:NAME" in body
        many = "&".join(f"topics=job:{number}" for number in range(51))
        assert (await ask(app, scope("/api/v1/events", query=many, authorization=TOKEN)))[0] == 400

    running(story)


def test_one_caller_has_six_streams_and_a_process_two_hundred() -> None:
    """A thousand clients come at once. The watcher asks the store no more often than for one of them."""

    def auth(headers: Any, cookies: Any) -> Identity:
        return Identity(headers["x-user"], Role.READ)

    async def auth_now(headers: Any, cookies: Any) -> Identity:
        return auth(headers, cookies)

    async def story(world: World, app: AsgiService) -> None:
        same = [Reader(app, x_user="ana", authorization="") for _ in range(8)]
        await asyncio.gather(*(one.until(lambda one=one: len(one.sent) > 1) for one in same))
        assert sorted(one.status for one in same) == [200] * 6 + [429] * 2
        others = [Reader(app, x_user=f"u{number}", authorization="") for number in range(992)]
        await asyncio.gather(*(one.until(lambda one=one: len(one.sent) > 1) for one in others))
        held = [one for one in (*same, *others) if one.status == 200]
        refused = [one for one in others if one.status == 429]
        assert (len(held), len(refused), app._streams.count) == (200, 798, 200)
        assert dict(refused[0].sent[0]["headers"])[b"Retry-After"] == b"5"
        before = world.shop.store.statements.total()
        app._watch.hasten()
        await asyncio.to_thread(lambda: None)
        while world.shop.store.statements.total() == before:
            await asyncio.sleep(0)
        await asyncio.to_thread(world.service.watcher.look)
        assert world.shop.store.statements.total() - before < 10
        app.end_streams()
        async with asyncio.timeout(20):
            await asyncio.gather(*(one.task for one in held))
        assert app._streams.count == 0
        assert {one.names[-1] for one in held} == {"bye"}

    running(story, auth=HostAuthentication(auth_now))


@pytest.mark.alone
def test_a_node_in_the_same_process_renews_in_time_beside_a_thousand_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some want streams, others send bodies that never end; both are bounded, and none costs a beat."""
    monkeypatch.setattr("solocron.service.asgi._BODY_WITHIN", 2.0)
    scheduler = Scheduler("memory://thousand-clients", lease="3s")
    scheduler.every("1h", name="tidy")(lambda: None)

    async def auth(headers: Any, cookies: Any) -> Identity:
        return Identity(headers["x-user"], Role.OPERATE)

    async def send_slowly(app: AsgiService, number: int) -> int:
        """Send the head of a write and a letter of its body, and nothing more."""
        sent: list[Any] = []
        parts = [{"type": "http.request", "body": b"{", "more_body": True}]

        async def receive() -> Any:
            return parts.pop() if parts else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        headers = {"x_user": f"u{number}", "content_type": "application/json", "sec_fetch_site": "same-origin"}
        await app(scope("/api/v1/jobs/tidy/pause", method="POST", **headers), receive, send)
        return int(sent[0]["status"])

    def renewals() -> int:
        (session,) = live_sessions(scheduler.open().store)
        return session.beats

    async def clients() -> None:
        app = AsgiService(Service(scheduler.open()), live=PATIENT, auth=HostAuthentication(auth))
        readers = [Reader(app, x_user=f"u{number}", authorization="") for number in range(1_000)]
        await asyncio.gather(*(one.until(lambda one=one: len(one.sent) > 1) for one in readers))
        assert Counter(one.status for one in readers) == {200: 200, 429: 800}
        slow = [asyncio.create_task(send_slowly(app, number)) for number in range(200)]
        before = await asyncio.to_thread(renewals)
        async with asyncio.timeout(30):
            while await asyncio.to_thread(renewals) < before + 3:
                await asyncio.sleep(0.05)
        assert set(await asyncio.gather(*slow)) == {408}
        app.end_streams()
        await asyncio.gather(*(one.task for one in readers))
        app.close()

    with scheduler:
        asyncio.run(clients())
        (node,) = scheduler.nodes()
        assert node.state == "live"
        assert node.late_s < 1, "no beat is left out: that of a lease of 3 s is 1 s"


def test_a_place_is_free_again_when_a_client_has_left() -> None:
    async def story(world: World, app: AsgiService) -> None:
        for _ in range(3):
            six = [Reader(app) for _ in range(6)]
            for one in six:
                await one.until(lambda one=one: len(one.sent) > 1)
            assert {one.status for one in six} == {200}
            for one in six:
                await one.leave()
        assert (app._streams.count, dict(app._streams._of)) == (0, {})

    running(story)


def test_nothing_is_asked_when_no_one_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.service.watch_loop.QUIET", 0.05)

    async def story(world: World, app: AsgiService) -> None:
        reader = Reader(app)
        await reader.until(lambda: len(reader.sent) > 1)
        await reader.leave()
        assert app._watch._task is not None
        app._watch.hasten()
        async with asyncio.timeout(20):
            await app._watch._task
        before = world.shop.store.statements.total()
        await ask(app, scope("/api/v1/me", authorization=TOKEN))
        assert app._watch._task.done()
        assert world.shop.store.statements.total() == before

    running(story)


def test_a_client_that_does_not_read_is_dropped_and_costs_the_others_nothing() -> None:
    async def story(world: World, app: AsgiService) -> None:
        slow, quick = Reader(app, slow=True), Reader(app)
        async with asyncio.timeout(20):
            await slow.task
        assert app._streams.count == 1
        await quick.until(lambda: quick.text.count("\n:\n\n") >= 1)
        await quick.leave()

    running(story, times=QUICK)


def test_a_client_that_does_not_read_does_not_keep_the_server_from_stopping() -> None:
    async def story(world: World, app: AsgiService) -> None:
        slow = Reader(app, slow=True)
        await slow.until(lambda: len(slow.sent) > 1)
        app.end_streams()
        async with asyncio.timeout(20):
            await slow.task
        assert app._streams.count == 0

    running(story, times=replace(PATIENT, write=3600.0))


def test_no_stream_begins_once_the_server_stops() -> None:
    async def story(world: World, app: AsgiService) -> None:
        app.end_streams()
        status, headers, _ = await ask(app, scope("/api/v1/events", authorization=TOKEN))
        assert (status, headers["retry-after"]) == (503, "5")

    running(story)


def test_a_login_that_is_over_ends_its_stream_at_the_next_comment() -> None:
    known = ["ana"]

    async def auth(headers: Any, cookies: Any) -> Identity | None:
        return Identity("ana", Role.READ) if known else None

    async def story(world: World, app: AsgiService) -> None:
        reader = Reader(app, authorization="")
        await reader.until(lambda: ":\n\n" in reader.text.replace("event:", ""))
        known.clear()
        async with asyncio.timeout(20):
            await reader.task
        assert reader.names[-1] == "bye"

    running(story, times=QUICK, auth=HostAuthentication(auth))


def test_a_stream_lives_for_its_time_and_ends_without_a_word() -> None:
    async def story(world: World, app: AsgiService) -> None:
        reader = Reader(app)
        async with asyncio.timeout(20):
            await reader.task
        assert reader.names == ["hello"]
        assert reader.sent[-1].get("more_body", False) is False

    running(story, times=replace(QUICK, life=0.05))


def test_wsgi_tells_what_is_new_and_when_to_ask_again() -> None:
    world = open_world()
    app = WsgiService(world.service)

    def asked(**more: str) -> str:
        status, headers, body = ask_wsgi(app, "/api/v1/events", HTTP_AUTHORIZATION=TOKEN, **more)
        assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        return body.decode()

    first = asked()
    assert "retry: 5000\n" in first
    ((name, hello, id),) = events_of(first)
    assert (name, hello["every_s"]) == ("hello", 5)
    assert id is not None
    world.shop.ran("invoices")
    world.service.watcher.hasten()
    names = [name for name, _, _ in events_of(asked(HTTP_LAST_EVENT_ID=id))]
    assert names == ["hello", "changed"]
