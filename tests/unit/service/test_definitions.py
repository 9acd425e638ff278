"""Jobs as data over HTTP, silences, the doctor, and a node with its attempts."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from solocron.service.roles import Role
from solocron.service.routes import API
from tests.unit.service.kit import Reply, World
from tests.unit.service.kit import world as open_world


@pytest.fixture
def own() -> World:
    return open_world()


def put(world: World, job: str = "mail", **body: Any) -> Reply:
    given = {"handler": "invoices", "schedule": "0 3 * * *"} | body
    return world.ask(f"{API}/jobs/{job}", method="PUT", role=Role.OPERATE, body=given)


def test_a_job_is_added_and_changed_and_both_are_on_record(own: World) -> None:
    added = put(own, timeout=90, retries=2, tags=["eu"], overlap="allow(2)", payload={"a": 1}, note="new")
    assert added.status == 200, added.json
    assert (added.json["timeout"], added.json["overlap"], added.json["declared"]) == (90, "allow(2)", False)
    assert added.json["defined_by"] == "operate-er"
    changed = put(own, schedule={"kind": "every", "period": "2h"})
    assert (changed.json["schedule"], changed.json["retries"], changed.json["timeout"]) == ("Every 2h", 0, None)
    acts = own.ask(f"{API}/audit", query="subject=mail").json["items"]
    assert [(one["act"], one["result"]) for one in acts] == [("add", "done"), ("add", "done")]
    assert acts[0]["before"]["schedule"] == "0 3 * * *"
    assert acts[1]["before"] is None


def test_what_is_read_can_be_put_back(own: World) -> None:
    put(
        own, catch_up={"limit": 10, "within": "1d"}, backoff={"first": 2, "factor": 3}, starts="2026-01-01", nodes="all"
    )
    first = own.ask(f"{API}/jobs/mail").json
    keys = ("backoff", "starts", "nodes", "overlap", "pool", "tags", "timeout", "enabled", "on_crash")
    again = put(own, schedule=first["spec"], **{key: first[key] for key in keys})
    assert again.status == 200, again.json
    assert {key: again.json[key] for key in keys} == {key: first[key] for key in keys}


def test_a_job_is_removed_and_what_it_was_is_on_record(own: World) -> None:
    put(own)
    gone = own.ask(f"{API}/jobs/mail", method="DELETE", role=Role.OPERATE, query="note=old")
    assert (gone.status, gone.json["name"]) == (200, "mail")
    assert own.ask(f"{API}/jobs/mail").status == 404
    act = own.ask(f"{API}/audit", query="subject=mail").json["items"][0]
    assert (act["act"], act["note"], act["before"]["handler"]) == ("remove", "old", "invoices")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"schedule": "every day"}, "cron"),
        ({"schedule": {"kind": "wibble"}}, "not one as"),
        ({"schedule": {}}, "not one as"),
        ({"schedule": {"kind": "every"}}, "not one as"),
        ({"schedule": {"kind": "custom"}}, "only code knows"),
        ({"schedule": {"kind": "every", "period": ["x"]}}, ""),
        ({"schedule": "x" * 300}, "schedule"),
        ({"retries": -1}, "retries"),
        ({"retries": "2"}, "retries"),
        ({"retries": True}, "retries"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": []}, "timeout"),
        ({"tags": [1]}, "tags"),
        ({"backoff": {"last": 1}}, "backoff"),
        ({"backoff": {"first": []}}, "Backoff(first=)"),
        ({"catch_up": {"never": 1}}, "catch_up"),
        ({"catch_up": {"limit": "x"}}, "limit"),
        ({"catch_up": "sometimes"}, "catch_up"),
        ({"overlap": "allow(0)"}, "allow"),
        ({"on_retry": "x"}, "not known"),
        ({"name": "x"}, "not known"),
        ({"handler": None}, "required"),
        ({"tz": "Mars/Olympus"}, "Mars"),
        ({"nodes": "some"}, "nodes"),
    ],
    ids=str,
)
def test_a_wrong_definition_is_400_and_nothing_is_changed(world: World, body: dict[str, Any], why: str) -> None:
    found = put(world, "wrong", **body)
    assert found.status == 400, found.json
    assert why in found.json["detail"]
    assert world.ask(f"{API}/jobs/wrong").status == 404


def test_a_declared_job_is_neither_changed_nor_removed(own: World) -> None:
    assert put(own, "invoices").status == 409
    with own.shop.scheduler:
        assert own.ask(f"{API}/jobs/invoices", method="DELETE", role=Role.OPERATE).status == 409


def test_without_edit_nothing_is_edited() -> None:
    world = open_world(edit=False)
    for found in (put(world), world.ask(f"{API}/jobs/invoices", method="DELETE", role=Role.OPERATE)):
        assert (found.status, "edit=True" in found.json["detail"]) == (403, True)
    assert world.ask(f"{API}/audit").json["items"] == []


def test_alarms_are_silenced_and_told_again(own: World) -> None:
    until = "2030-01-01T00:00:00Z"
    too_far = own.ask(f"{API}/silences", method="POST", role=Role.OPERATE, body={"what": "late", "until": until})
    assert (too_far.status, "90 days" in too_far.json["detail"]) == (400, True)
    soon = own.shop.scheduler.upcoming("invoices", 1)[0].isoformat()
    made = own.ask(f"{API}/silences", method="POST", role=Role.OPERATE, body={"what": "late:inv*", "until": soon})
    assert (made.status, made.json["by"]) == (200, "operate-er")
    assert [one["what"] for one in own.ask(f"{API}/alarms").json["silences"]] == ["late:inv*"]
    assert own.ask(f"{API}/alarms", query="state=closed").json["alarms"] == []
    lifted = own.ask(f"{API}/silences/lift", method="POST", role=Role.OPERATE, body={"what": "late:inv*"})
    assert lifted.json == {"what": "late:inv*"}
    assert own.ask(f"{API}/alarms").json["silences"] == []
    acts = [one["act"] for one in own.ask(f"{API}/audit", query="subject=late:inv*").json["items"]]
    assert acts == ["lift silence", "silence"]


def test_the_doctor_looks_once_in_ten_seconds(own: World) -> None:
    first = own.ask(f"{API}/doctor").json
    assert first["ok"] is True
    assert {one["name"] for one in first["checks"]} >= {"store", "nodes", "namespace"}
    put(own)
    assert own.ask(f"{API}/doctor").json == first


def test_a_repair_is_on_record_and_only_one_is_under_way(own: World, monkeypatch: pytest.MonkeyPatch) -> None:
    done = own.ask(f"{API}/doctor/repair", method="POST", role=Role.OPERATE, body={})
    assert (done.status, done.json) == (200, {"repaired": []})
    assert own.ask(f"{API}/audit").json["items"][0]["act"] == "repair"
    inside, go_on = threading.Event(), threading.Event()

    def slow(self: Any) -> list[str]:
        inside.set()
        assert go_on.wait(20)
        return []

    monkeypatch.setattr("solocron.service.writes.Writes.repair", slow)
    first = threading.Thread(
        target=own.ask, args=(f"{API}/doctor/repair",), kwargs={"method": "POST", "role": Role.OPERATE, "body": {}}
    )
    first.start()
    assert inside.wait(20)
    assert own.ask(f"{API}/doctor/repair", method="POST", role=Role.OPERATE, body={}).status == 409
    go_on.set()
    first.join()


def test_a_node_is_shown_with_its_attempts(world: World) -> None:
    found = world.ask(f"{API}/nodes/{world.names['session']}").json
    assert found["session"] == world.names["session"]
    assert {one["node"] for one in found["attempts"]} <= {found["node"]}
    assert world.ask(f"{API}/nodes/nothing").status == 404
