"""Commands over HTTP: what they do, that a repeated one does it once, and that each is on record before it is done."""

from __future__ import annotations

from typing import Any

import pytest

from solocron.errors import StoreUnavailable
from solocron.service.roles import Role
from tests.unit.service.kit import Reply, World
from tests.unit.service.kit import world as open_world


@pytest.fixture
def world() -> World:
    return open_world()


def post(world: World, path: str, body: dict[str, Any] | None = None, **headers: str) -> Reply:
    return world.ask(f"/api/v1{path}", method="POST", role=Role.OPERATE, body=body or {}, **headers)


def audit(world: World) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = world.ask("/api/v1/audit").json["items"]
    return items


def test_a_trigger_with_the_same_key_is_the_same_run(world: World) -> None:
    first = post(world, "/jobs/invoices/trigger", {"payload": {"a": 1}, "note": "month end"}, idempotency_key="k1")
    again = post(world, "/jobs/invoices/trigger", {"payload": {"a": 2}}, idempotency_key="k1")
    other = post(world, "/jobs/invoices/trigger", idempotency_key="k2")
    assert (first.status, again.status, other.status) == (202, 202, 202)
    assert first.json == again.json
    assert first.json["run"] != other.json["run"]
    assert first.header("location") == first.json["href"]
    world.shop.tick()
    shown = world.ask(first.json["href"].replace("@", "%40")).json
    assert (shown["status"], shown["asked_by"], shown["note"]) == ("succeeded", "operate-er", "month end")


def test_every_act_is_on_record_with_its_author_and_its_outcome(world: World) -> None:
    paused = post(world, "/jobs/invoices/pause", {"note": "schema move", "until": "2099-01-01T00:00:00Z"})
    assert paused.json["paused"]["by"] == "operate-er"
    post(world, "/jobs/nothing/pause")
    post(world, "/jobs/invoices/resume", {"seen": "2020-01-01T00:00:00Z"})
    resumed = post(world, "/jobs/invoices/resume", {"seen": paused.json["paused"]["at"]})
    assert (resumed.status, resumed.json["paused"]) == (200, None)
    found = audit(world)
    assert [(one["act"], one["subject"], one["result"][:4]) for one in found] == [
        ("resume", "invoices", "done"),
        ("resume", "invoices", "invo"),
        ("pause", "invoices", "done"),
    ]
    last = found[-1]
    assert (last["who"], last["role"], last["via"], last["address"]) == ("operate-er", "operate", "api", "127.0.0.1")
    assert last["note"] == "schema move"
    assert last["request"] == paused.header("solocron-request")
    assert last["after"]["by"] == "operate-er"
    assert found[0]["before"]["note"] == "schema move"


def test_what_cannot_be_put_on_record_is_not_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*args: Any, **options: Any) -> Any:
        raise StoreUnavailable("the store is away; nothing was written.")

    monkeypatch.setattr("solocron.client.audit.write", down)
    refused = post(world, "/jobs/invoices/pause")
    assert (refused.status, refused.json["code"]) == (503, "StoreUnavailable")
    assert refused.header("retry-after") == "5"
    assert world.ask("/api/v1/jobs/invoices").json["paused"] is None


def test_a_run_that_waits_is_cancelled_and_one_that_is_over_is_a_conflict(world: World) -> None:
    run = post(world, "/jobs/invoices/trigger", {"at": "2099-01-01T00:00:00Z"}, idempotency_key="k").json["run"]
    found = post(world, f"/runs/{run.replace('@', '%40')}/cancel", {"reason": "not needed"})
    assert (found.status, found.json) == (200, {"answer": "cancelled"})
    over = post(world, f"/runs/{world.names['run']}/cancel")
    assert (over.status, over.json["code"]) == (409, "ConflictError")
    assert "succeeded" in over.json["detail"]


def test_a_slot_runs_again_once_for_a_key(world: World) -> None:
    world.shop.later(3_600)
    world.shop.tick()
    slot = world.ask("/api/v1/jobs/invoices/runs", query="origin=schedule").json["items"][0]["slot"]
    first, again = (post(world, "/jobs/invoices/rerun", {"slot": slot}, idempotency_key="k") for _ in range(2))
    assert (first.status, first.json) == (202, again.json)
    assert len(first.json["runs"]) == 1
    assert post(world, "/jobs/invoices/rerun", idempotency_key="k").status == 400


def test_a_backfill_is_previewed_by_get_and_begun_by_post(world: World) -> None:
    query = "start=2026-01-01T00:00:00Z&end=2026-01-03T00:00:00Z"
    preview = world.ask("/api/v1/jobs/report/backfill", query=query).json
    assert (preview["id"], preview["total"]) == (None, 2)
    body = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T00:00:00Z", "rate": "10/m"}
    first, again = (post(world, "/jobs/report/backfill", body, idempotency_key="k") for _ in range(2))
    assert (first.status, first.json["total"]) == (202, 2)
    assert first.json["id"] == again.json["id"]
    assert len(world.ask("/api/v1/backfills").json["items"]) == 1


def test_many_are_paused_each_for_itself(world: World) -> None:
    body = {"action": "pause", "jobs": ["invoices", "nothing", "report"], "note": "move"}
    found = post(world, "/bulk", body).json["results"]
    assert [(one["job"], one["ok"]) for one in found] == [("invoices", True), ("nothing", False), ("report", True)]
    assert "there is no job 'nothing'" in found[1]["problem"]
    assert world.ask("/api/v1/status").json["paused"] == ["invoices", "report"]
    assert post(world, "/bulk", body | {"jobs": ["a b"]}).status == 400
    assert post(world, "/bulk", body | {"jobs": ["a"] * 201}).status == 400


def test_a_lock_is_released_only_with_the_fence_that_was_shown(world: World) -> None:
    lock = world.shop.scheduler.lock("till", at_most="1h")
    with lock:
        fence = next(one["fence"] for one in world.ask("/api/v1/locks").json["items"] if one["name"] == "till")
        stale = post(world, "/locks/till/release", {"reason": "stuck", "fence": fence - 1})
        assert (stale.status, str(fence) in stale.json["detail"]) == (409, True)
        found = post(world, "/locks/till/release", {"reason": "stuck", "fence": fence})
        assert found.status == 200
        assert found.json["fence"] > fence
    assert post(world, "/locks/none/release", {"reason": "x", "fence": 1}).status == 404


def test_what_is_not_set_aside_cannot_be_tried_again(world: World) -> None:
    assert post(world, "/set-aside/job/invoices/unblock").status == 404
    assert post(world, "/set-aside/tea/invoices/unblock").json["detail"] == "There is nothing at this path."
