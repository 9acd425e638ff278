"""What the API shows: the keys of `--json`, pages that neither skip nor repeat, and no secret anywhere."""

from __future__ import annotations

import base64
import gzip
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.service.handle import Service, _written
from solocron.service.pages.assets import static_hash
from solocron.service.roles import Role
from solocron.service.routes import API, ROUTES
from solocron.stores.url import make_store
from solocron.views import to_json
from tests.unit.cli.kit import Shop
from tests.unit.service.kit import TOKENS, World, tokens
from tests.unit.service.kit import world as open_world

CANARY = "hunter2-canary"


def get(world: World, path: str, query: str = "", role: Role = Role.READ) -> Any:
    found = world.ask(f"{API}{path}", query=query, role=role)
    assert found.status == 200, found.response.body
    return found.json


def test_keys_are_those_of_the_command_line(world: World) -> None:
    client = Client(world.shop.store)
    job = to_json(client.get_job("invoices"))
    assert get(world, "/jobs/invoices").keys() - job.keys() == {"notes", "backfills"}
    assert get(world, "/jobs", "q=invoices")["items"][0].keys() == job.keys()
    status = to_json(client.status())
    shown = get(world, "/status")
    assert shown.keys() - status.keys() == {"more", "check"}
    assert {key: shown[key] for key in ("namespace", "jobs", "counts", "paused")} == {
        key: status[key] for key in ("namespace", "jobs", "counts", "paused")
    }
    run = to_json(client.get_run(world.names["run"]))
    more = {"payload", "attempts", "steps", "story", "audit"}
    assert get(world, f"/runs/{world.names['run']}").keys() - run.keys() == more
    assert get(world, "/nodes", "state=ended")["items"][0].keys() == to_json(client.nodes(ended=True))[0].keys()


@pytest.mark.parametrize("limit", [1, 2, 200])
def test_pages_of_jobs_neither_skip_nor_repeat(world: World, limit: int) -> None:
    assert [job["name"] for job in walk(world, "/jobs", f"limit={limit}")] == ["broken", "invoices", "report"]
    assert [job["name"] for job in walk(world, "/jobs", f"limit={limit}&q=o")] == ["broken", "invoices", "report"]
    assert [job["name"] for job in walk(world, "/jobs", f"limit={limit}&state=failing&state=paused")] == ["broken"]


@pytest.mark.parametrize("limit", [1, 2, 200])
def test_jobs_come_by_their_next_slot_or_by_what_needs_a_look(world: World, limit: int) -> None:
    for sort, names in (("attention", "broken invoices report"), ("next", "invoices report broken")):
        found = walk(world, "/jobs", f"sort={sort}&limit={limit}")
        if sort == "next":
            due = [job["next"] for job in found]
            assert due == [*sorted(one for one in due if one), *(one for one in due if not one)]
            assert {job["name"] for job in found} == set(names.split())
        else:
            assert found[0]["name"] == "broken"
    assert [job["name"] for job in walk(world, "/jobs", "sort=next&state=failing&q=o")] == ["broken"]
    assert {job["name"] for job in walk(world, "/jobs", "sort=attention&state=on")} <= {"broken", "invoices", "report"}
    cursor = get(world, "/jobs", "sort=next&limit=1")["next"]
    assert world.ask(f"{API}/jobs", query=f"sort=attention&limit=1&cursor={cursor}").status == 400


def test_a_run_tells_its_story_and_who_acted_on_it() -> None:
    world = open_world()
    run = world.names["run"]
    world.ask(f"{API}/runs/{run}/cancel", method="POST", role=Role.OPERATE, body=b'{"reason": "too late"}',
              content_type="application/json")  # fmt: skip
    found = get(world, f"/runs/{run}")
    assert [fact["what"].partition(",")[0].partition(" by ")[0] for fact in found["story"]] == [
        "due",
        "attempt 1 claimed",
        "attempt 1 succeeded",
    ]
    assert [fact["at"] for fact in found["story"]] == sorted(fact["at"] for fact in found["story"])
    assert [(act["act"], act["who"], act["note"]) for act in found["audit"]] == [("cancel", "operate-er", "too late")]
    assert "is over" in found["audit"][0]["result"]


@pytest.mark.parametrize("limit", [1, 3])
def test_pages_of_runs_neither_skip_nor_repeat(limit: int) -> None:
    world = open_world()
    ran = [world.shop.ran("invoices") for _ in range(4)]
    found = [run["run"] for run in walk(world, "/jobs/invoices/runs", f"limit={limit}")]
    assert found == [*reversed(ran), world.names["run"]]
    assert {run["status"] for run in walk(world, "/runs", f"limit={limit}&status=failed")} == {"failed"}


def walk(world: World, path: str, query: str) -> list[Any]:
    found, page = [], get(world, path, query)
    found += page["items"]
    while page["next"] is not None:
        page = get(world, path, f"{query}&cursor={page['next']}")
        found += page["items"]
    return found


def test_ended_nodes_are_those_of_a_span(world: World) -> None:
    assert get(world, "/nodes")["items"] == []
    ended = get(world, "/nodes", "state=ended")["items"]
    assert {node["state"] for node in ended} == {"ended"}
    assert get(world, "/nodes", "state=ended&since=2099-01-01T00:00:00Z")["items"] == []
    assert get(world, "/nodes", "state=ended&since=2020-01-01T00:00:00Z")["items"] == ended


def test_a_cursor_fits_its_own_filters_alone(world: World) -> None:
    cursor = get(world, "/jobs", "limit=1")["next"]
    assert get(world, "/jobs", f"limit=2&cursor={cursor}")["items"][0]["name"] == "invoices", "another limit is fine"

    def refused(path: str, query: str) -> str:
        found = world.ask(f"{API}{path}", query=query)
        assert (found.status, found.json["fields"][0]["name"]) == (400, "cursor")
        return str(found.json["detail"])

    assert "other filters" in refused("/jobs", f"q=o&cursor={cursor}")
    assert "other filters" in refused("/locks", f"cursor={cursor}")
    of_one = get(world, "/jobs/invoices/runs", "limit=1")["next"] or get(world, "/runs", "limit=1")["next"]
    assert "other filters" in refused("/jobs/broken/runs", f"cursor={of_one}")
    forged = base64.urlsafe_b64encode(json.dumps(["x", 1]).encode()).decode().rstrip("=")
    for odd in ("x", "____", forged, base64.urlsafe_b64encode(b"[" * 300).decode().rstrip("=")):
        refused("/jobs", f"cursor={odd}")


def test_a_job_that_does_not_exist_is_404_without_the_names_of_others(world: World) -> None:
    found = world.ask(f"{API}/jobs/invoice")
    assert (found.status, found.json["code"]) == (404, "NotFoundError")
    assert "invoices" not in found.json["detail"]
    for path in ("/jobs/a%2Fb", "/jobs/%00", "/jobs/%FF", "/jobs/" + "x" * 129, "/runs/x", "/runs/x@12"):
        assert world.ask(f"{API}{path}").json["detail"] == "There is nothing at this path."


def test_the_next_slots_are_told_in_two_clocks(world: World) -> None:
    found = get(world, "/jobs/report/next", "n=2&from=2026-03-07T12:00:00Z")
    assert [slot["slot"] for slot in found["slots"]] == ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]
    assert found["slots"][1]["local"] == "2026-03-09T02:30:00-04:00"
    assert any("2026-03-08" in note for note in found["notes"]), "the clocks skip 02:30"
    assert get(world, "/jobs/report/next", "n=1&tz=UTC")["slots"][0]["local"].endswith("+00:00")
    assert world.ask(f"{API}/jobs/report/next", query="tz=Mars/Base").status == 400


def test_every_slot_of_a_span_has_its_fate_and_its_reason() -> None:
    world = open_world()
    world.shop.scheduler.pause("invoices", by="ana", note="schema move")
    world.shop.later(2 * 3_600)
    world.shop.scheduler.resume("invoices")
    world.shop.tick()
    now = datetime.fromisoformat(get(world, "/status")["now"])
    span = f"from={stamp(now - timedelta(hours=3))}&to={stamp(now + timedelta(hours=1))}"
    found = get(world, "/jobs/invoices/slots", f"{span}&tz=Asia/Kolkata")["slots"]
    skipped = [slot for slot in found if slot["status"] == "skipped"]
    assert len(skipped) == 2
    assert all("paused" in slot["reason"] and slot["local"].endswith("+05:30") for slot in skipped)
    why = get(world, "/jobs/invoices/why", f"at={skipped[0]['slot']}")
    assert (why["slot"], why["status"]) == (skipped[0]["slot"], "skipped")
    assert "paused" in why["verdict"]
    sums = get(world, "/jobs/invoices/accounting", "hours=3")
    assert (sums["due"], sums["unaccounted"]) == (sum(sums["counts"].values()), [])
    assert sums["counts"]["skipped"] == 2


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_durations_have_their_quantiles(world: World) -> None:
    found = get(world, "/jobs/invoices/durations")
    assert [item["status"] for item in found["items"]] == ["succeeded"]
    assert found["p50"] == found["p95"] == found["items"][0]["took_s"] >= 0


def test_explain_needs_no_store(world: World) -> None:
    found = get(world, "/explain", "expression=30+2+*+*+*&tz=Europe/Berlin&n=2")
    assert found["description"] == "At 02:30 every day, Europe/Berlin"
    assert len(found["next"]) == 2
    wrong = world.ask(f"{API}/explain", query="expression=61+*+*+*+*")
    assert (wrong.status, wrong.json["code"]) == (400, "ScheduleError")


def test_a_large_answer_is_compressed_for_those_who_take_it(world: World) -> None:
    plain = world.ask(f"{API}/openapi.json")
    small = world.ask(f"{API}/openapi.json", accept_encoding="br, gzip")
    assert small.header("content-encoding") == "gzip"
    assert gzip.decompress(small.response.body) == plain.response.body
    assert len(small.response.body) < len(plain.response.body) / 5
    assert world.ask(f"{API}/openapi.json", accept_encoding="gzip;q=0").header("content-encoding") is None


@pytest.fixture(scope="module")
def leaky() -> World:
    """A world with a secret in every place that one can be in, but for names."""
    scheduler = Scheduler("memory://leaky", node="kitchen")

    @scheduler.every("1h", name="invoices", payload={"api_key": CANARY, "nested": [{"Password": CANARY}]})
    def invoices() -> dict[str, str]:
        raise RuntimeError(f"cannot connect to postgresql://shop:{CANARY}@db/shop")

    @scheduler.every("1h", name="report")
    def report() -> dict[str, str]:
        return {"token": CANARY, "url": f"redis://:{CANARY}@cache:6379/0"}

    scheduler.tick()
    store = make_store("memory://leaky")
    shop = Shop("memory://leaky", scheduler, store)
    shop.ran("invoices")
    run = shop.ran("report")
    session = Client(store).nodes(ended=True)[0].session
    names = {"job": "invoices", "run": run, "session": session, "calendar": "x", "lock": "x", "kind": "job"}
    return World(
        shop,
        Service(Client(store), tokens=tokens()),
        names | {"document": "x", "digest": static_hash(), "file": "app.js"},
    )


@pytest.mark.parametrize("route", [route for route in ROUTES if not route.writes], ids=lambda route: route.path)
@pytest.mark.parametrize("role", [Role.READ, Role.OPERATE])
def test_no_secret_is_shown_anywhere(leaky: World, route: Any, role: Role) -> None:
    found = leaky.send(route, role=role)
    assert found.status in (200, 403, 404)
    assert CANARY.encode() not in found.response.body
    assert not any(CANARY in value or TOKENS[role] in value for _, value in found.response.headers)
    assert TOKENS[role].encode() not in found.response.body


def test_a_password_in_a_note_is_masked(leaky: World) -> None:
    url = f"mysql://shop:{CANARY}@db/shop"
    leaky.shop.scheduler.pause("report", by="ana", note=f"moving {url}")
    assert get(leaky, "/jobs/report")["paused"]["note"] == "moving mysql://shop:***@db/shop"
    shown = leaky.ask("/jobs/report").response.body
    assert (b"moving mysql://shop:***@db/shop" in shown, CANARY.encode() in shown) == (True, False)


def test_values_are_shown_where_they_are_asked_for_to_those_who_may(leaky: World) -> None:
    path = f"/runs/{leaky.names['run']}"
    assert get(leaky, path, role=Role.OPERATE)["result"] is None
    assert get(leaky, path, "include=result", Role.READ)["result"] is None
    shown = get(leaky, path, "include=result", Role.OPERATE)["result"]
    assert shown == {"token": "***", "url": "redis://:***@cache:6379/0"}
    job = get(leaky, "/jobs/invoices", "include=payload", Role.OPERATE)
    assert job["payload"] == {"api_key": "***", "nested": [{"Password": "***"}]}
    assert "postgresql://shop:***@db/shop" in job["last_error"]


def test_the_tag_of_an_answer_is_that_of_what_lasts() -> None:
    def answer(left: float, until: str, name: str) -> tuple[bytes, bytes]:
        held = {"run": 'a"lease_left_s":1', "lease_left_s": left, "name": name}
        return _written({"items": [held], "as_of": until, "lease": {"until": "kept"}})

    (body, lasting), other = answer(1.5, "10:00", "x"), answer(-0.25, "10:01", "x")
    assert json.loads(body) == {
        "items": [{"run": 'a"lease_left_s":1', "lease_left_s": 1.5, "name": "x"}],
        "as_of": "10:00",
        "lease": {"until": "kept"},
    }
    assert lasting == other[1]
    assert lasting != answer(1.5, "10:00", "y")[1]
    assert _written([1, {"a": None}]) == (b'[1,{"a":null}]',) * 2


def test_metrics_are_text_for_the_roles_that_may_see_them(world: World) -> None:
    reply = world.ask("/metrics", role=Role.METRICS)
    assert (reply.status, reply.response.kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b"\nsolocron_jobs{" in reply.response.body
    assert world.ask("/metrics", role=Role.READ).status == 200
    assert world.ask("/metrics", role=Role.TICK).status == 403
    assert world.ask("/api/v1/jobs", role=Role.METRICS).status == 403
