"""`scheduler.asgi()` and `scheduler.wsgi()`: what they open, whom they let in, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solocron import Message, Scheduler
from solocron.cli.overrides import Overrides
from solocron.errors import ConfigurationError, MissingExtra
from solocron.scheduler.hooks import core_of, service_clients_of
from solocron.service import Identity, Oidc, Role
from solocron.service.asgi import AsgiService
from solocron.service.tokens import add_token
from solocron.service.wsgi import WsgiService
from tests.unit.service.test_adapters import ask, ask_wsgi, scope


@pytest.fixture
def scheduler(tmp_path: Path) -> Scheduler:
    made = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}", node="n")
    made.every("1h", name="bill")(lambda: None)
    return made


def filled(scheduler: Scheduler) -> Scheduler:
    scheduler.tick()
    return scheduler


def everybody(headers: Any, cookies: Any) -> Identity:
    return Identity("ana", Role.OPERATE)


def get(app: WsgiService, path: str, **environ: Any) -> tuple[int, Any]:
    status, _, body = ask_wsgi(app, path, **environ)
    try:
        return status, json.loads(body)
    except ValueError:
        return status, body


def post(app: WsgiService, path: str, body: Any = None, **environ: Any) -> tuple[int, Any]:
    content = json.dumps(body if body is not None else {}).encode()
    given = {
        "REQUEST_METHOD": "POST", "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(content)),
        "HTTP_SEC_FETCH_SITE": "same-origin",
    }  # fmt: skip
    status, _, found = ask_wsgi(app, path, body=content, **given | environ)
    return status, json.loads(found)


def test_mounting_opens_nothing_and_starts_no_thread(scheduler: Scheduler, tmp_path: Path) -> None:
    before = threading.active_count()
    scheduler.asgi()
    app = scheduler.wsgi()
    assert get(app, "/health/live")[0] == 200
    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


def test_looking_where_there_is_no_store_yet_makes_none(scheduler: Scheduler, tmp_path: Path) -> None:
    app = scheduler.wsgi(auth=everybody)
    assert get(app, "/api/v1/status")[0] == 404
    assert get(app, "/health/ready")[0] == 503
    assert list(tmp_path.iterdir()) == []
    filled(scheduler)
    assert get(app, "/api/v1/status")[0] == 200
    app.close()


def test_without_auth_and_tokens_no_caller_is_known(scheduler: Scheduler) -> None:
    app = scheduler.wsgi()
    for path in ("/", "/api/v1/status", "/api/v1/openapi.json", "/nothing"):
        assert get(app, path)[0] == 401


def test_a_token_of_the_file_is_known_and_so_is_the_hosts_own_user(scheduler: Scheduler, tmp_path: Path) -> None:
    token = add_token(tmp_path / "tokens", "bot", Role.READ)
    app = scheduler.wsgi(tokens=tmp_path / "tokens", auth=everybody)
    assert get(app, "/api/v1/me", HTTP_AUTHORIZATION=f"Bearer {token}")[1]["name"] == "bot"
    assert get(app, "/api/v1/me")[1]["name"] == "ana"


def test_a_role_given_as_a_word_sees_what_its_role_sees(scheduler: Scheduler) -> None:
    filled(scheduler)
    scheduler.register(lambda run: None, name="send")
    scheduler.add("mail", "send", "0 0 * * *", payload={"to": "x"})
    app = scheduler.wsgi(auth=lambda headers, cookies: Identity("ana", "operate"))  # type: ignore[arg-type]
    assert get(app, "/api/v1/jobs/mail", QUERY_STRING="include=payload")[1]["payload"] == {"to": "x"}
    app.close()


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", None])
def test_an_identity_whose_name_cannot_be_on_record_is_not_known(scheduler: Scheduler, name: Any) -> None:
    assert get(scheduler.wsgi(auth=lambda headers, cookies: Identity(name)), "/api/v1/me")[0] == 401


async def awaited(headers: Any, cookies: Any) -> Identity:
    return Identity("ana")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"auth": "ana"}, "must be a function"),
        ({"auth": awaited}, "cannot await"),
        ({"values": "all"}, "operate, read, never"),
        ({"allowed_hosts": "example.com"}, "a list of names"),
        ({"allowed_hosts": []}, "is empty"),
        ({"allowed_hosts": ["https://example.com"]}, "without scheme"),
        ({"allowed_hosts": ["example.com:80"]}, "without scheme"),
        ({"allowed_hosts": ["*"], "tokens": "/nowhere/tokens"}, "cannot be used"),
        ({"oidc": Oidc(issuer="https://i.example", audience="a", subject="s")}, "tick=True"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_nothing_is_served(
    scheduler: Scheduler, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        scheduler.wsgi(**options)
    assert "Nothing" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_the_extra_it_says_which_to_install(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for make in (scheduler.asgi, scheduler.wsgi):
        with pytest.raises(MissingExtra, match=r'pip install "solocron\[web\]"'):
            make()


def test_reads_never_use_a_connection_that_may_write(scheduler: Scheduler) -> None:
    filled(scheduler)
    clients = service_clients_of(scheduler)
    app = scheduler.wsgi(auth=everybody)
    assert post(app, "/api/v1/jobs/bill/pause", {"note": "why"})[0] == 200
    assert get(app, "/api/v1/jobs/bill")[1]["paused"]["note"] == "why"
    clients.writing().pause("bill")
    store = clients.reading().store
    assert store is not clients.writing().store
    assert store is not core_of(scheduler).store
    with pytest.raises(Exception, match="read"), store.links.link() as link:  # type: ignore[attr-defined]
        link.script("CREATE TABLE x (y)")
    clients.close()
    app.close()


def test_a_trigger_wakes_the_node_of_this_process(tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}", node="n", enabled=True)
    done = threading.Event()
    scheduler.every("1000d", name="bill")(done.set)
    with scheduler:
        app = scheduler.wsgi(auth=everybody)
        assert post(app, "/api/v1/jobs/bill/trigger", HTTP_IDEMPOTENCY_KEY="k")[0] == 202
        assert done.wait(20)
        assert get(app, "/health/ready")[0] == 200
        app.close()


def test_it_serves_the_store_that_the_command_line_names_after_it_was_mounted(
    scheduler: Scheduler, tmp_path: Path
) -> None:
    filled(scheduler)
    app = scheduler.wsgi(auth=everybody)
    assert [job["name"] for job in get(app, "/api/v1/jobs")[1]["items"]] == ["bill"]
    Overrides(store=f"sqlite:///{tmp_path / 'other.db'}").apply(scheduler, "target")
    assert get(app, "/api/v1/jobs")[0] == 404
    app.close()


def test_a_node_that_cannot_claim_makes_the_process_not_ready(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(scheduler)
    app = scheduler.wsgi()
    assert get(app, "/health/ready")[0] == 200
    monkeypatch.setattr(type(core_of(scheduler)), "running_node", _Draining)
    assert get(app, "/health/ready") == (503, b"not ready\n")
    app.close()


class _Draining:
    class pulse:  # noqa: N801
        @staticmethod
        def look() -> Any:
            return type("Health", (), {"ready": False})


# --- tick


@pytest.fixture
def ticking(scheduler: Scheduler, tmp_path: Path) -> Iterator[tuple[WsgiService, dict[str, str]]]:
    token = add_token(tmp_path / "tokens", "cron", Role.TICK)
    app = scheduler.wsgi(tokens=tmp_path / "tokens", tick=True, auth=everybody)
    yield app, {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    app.close()


def test_a_tick_runs_what_is_due_and_says_what_is_next(
    scheduler: Scheduler, ticking: tuple[WsgiService, dict[str, str]]
) -> None:
    app, token = ticking
    filled(scheduler).trigger("bill")
    status, found = post(app, "/api/v1/tick", **token)
    assert status == 200
    assert [(one["job"], one["status"]) for one in found["runs"]] == [("bill", "succeeded")]
    assert (found["failed"], found["busy"]) == (0, False)
    assert found["next"] is not None
    assert found["took_s"] >= 0


def test_a_run_that_fails_is_no_failure_of_the_tick(
    scheduler: Scheduler, ticking: tuple[WsgiService, dict[str, str]]
) -> None:
    app, token = ticking
    scheduler.every("1000d", name="broken")(lambda: 1 / 0)
    filled(scheduler).trigger("broken")
    status, found = post(app, "/api/v1/tick", **token)
    assert (status, found["failed"]) == (200, 1)


def test_a_tick_tells_how_many_runs_it_handed_over(
    scheduler: Scheduler, ticking: tuple[WsgiService, dict[str, str]]
) -> None:
    app, token = ticking
    messages: list[Message] = []
    scheduler.carrier("queue", messages.append, follows=True)
    scheduler.every("1000d", name="books", run_in="queue")(lambda run: None)
    filled(scheduler).trigger("books")
    status, found = post(app, "/api/v1/tick", **token)
    assert (status, found["handed_over"], found["runs"], len(messages)) == (200, 1, [], 1)


def test_no_other_role_ticks_and_the_role_does_nothing_else(ticking: tuple[WsgiService, dict[str, str]]) -> None:
    app, token = ticking
    assert post(app, "/api/v1/tick")[0] == 403, "operate does not contain tick"
    assert get(app, "/api/v1/status", **token)[0] == 403


@pytest.mark.parametrize("body", [b"", b"{}", b'{"detail": {"a": 1}}', b"not json"])
@pytest.mark.parametrize("kind", ["", "application/octet-stream", "application/json; charset=utf-8"])
def test_any_body_will_do(ticking: tuple[WsgiService, dict[str, str]], body: bytes, kind: str) -> None:
    app, token = ticking
    environ = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": kind} | token
    assert ask_wsgi(app, "/api/v1/tick", body=body, **environ)[0] == 200


def test_there_is_no_tick_where_it_was_not_asked_for(scheduler: Scheduler, tmp_path: Path) -> None:
    token = add_token(tmp_path / "tokens", "cron", Role.TICK)
    app = scheduler.wsgi(tokens=tmp_path / "tokens")
    assert post(app, "/api/v1/tick", HTTP_AUTHORIZATION=f"Bearer {token}")[0] == 404


def test_where_a_node_runs_a_tick_is_a_conflict(tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}", node="n", enabled=True)
    scheduler.every("1000d", name="bill")(lambda: None)
    token = add_token(tmp_path / "tokens", "cron", Role.TICK)
    with scheduler:
        app = scheduler.wsgi(tokens=tmp_path / "tokens", tick=True)
        status, found = post(app, "/api/v1/tick", HTTP_AUTHORIZATION=f"Bearer {token}")
        assert (status, "Nothing was done" in found["detail"]) == (409, True)
        app.close()


def test_a_second_tick_is_told_that_one_is_under_way_and_the_store_is_asked_meanwhile(tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}", node="n")
    going, go_on = threading.Event(), threading.Event()

    @scheduler.every("1000d", name="bill")
    def work() -> None:
        going.set()
        assert go_on.wait(30)

    scheduler.tick()
    scheduler.trigger("bill")
    token = add_token(tmp_path / "tokens", "cron", Role.TICK)
    app = scheduler.asgi(tokens=tmp_path / "tokens", auth=everybody, tick=True)

    async def both() -> tuple[Any, Any, Any]:
        given = scope("/api/v1/tick", method="POST", authorization=f"Bearer {token}")
        first = asyncio.create_task(ask(app, given))
        while not going.is_set():
            await asyncio.sleep(0.01)
        second, looked = await ask(app, given), await ask(app, scope("/api/v1/jobs"))
        go_on.set()
        return await first, second, looked

    first, second, looked = asyncio.run(both())
    app.close()
    assert (first[0], second[0], looked[0]) == (200, 202, 200)
    assert (json.loads(second[2])["busy"], second[1]["retry-after"]) == (True, "5")


def test_a_caller_that_does_not_wait_gets_its_answer_at_once(
    scheduler: Scheduler, ticking: tuple[WsgiService, dict[str, str]]
) -> None:
    app, token = ticking
    done = threading.Event()
    scheduler.every("1000d", name="later")(done.set)
    filled(scheduler).trigger("later")
    status, found = post(app, "/api/v1/tick", QUERY_STRING="wait=0", **token)
    assert (status, found["busy"], found["took_s"]) == (202, False, None)
    assert done.wait(30)
    for thread in threading.enumerate():
        if thread.name == "solocron-tick":
            thread.join()


@pytest.mark.parametrize("live", [True, False])
def test_without_live_there_is_no_stream_and_pages_ask_again(scheduler: Scheduler, live: bool) -> None:
    service = filled(scheduler).asgi(auth=everybody, live=live)
    page = asyncio.run(ask(service, scope("/jobs", accept="text/html")))
    assert (b'<meta name="solocron-streams" content="off">' in page[2]) is not live
    if not live:
        assert asyncio.run(ask(service, scope("/api/v1/events", query="topics=runs")))[0] == 404
    service.close()


def test_asgi_and_wsgi_are_what_they_say(scheduler: Scheduler) -> None:
    assert isinstance(scheduler.asgi(), AsgiService)
    assert isinstance(scheduler.wsgi(), WsgiService)
