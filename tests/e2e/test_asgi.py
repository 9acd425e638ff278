"""A coroutine job that blocks the loop of a real uvicorn process does not cost the process its session."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path

import pytest

from solocron.testing.fleet import wait_until
from tests.e2e.conftest import MakeFleet
from tests.servers.base import free_port

LEASE = 1.0
PROGRAM = "tests.e2e.programs.webapp"


@pytest.mark.invariant("I8: a body that can be stopped does nothing after its lease")
def test_a_loop_blocked_for_three_leases_keeps_its_session(make_fleet: MakeFleet, tmp_path: Path) -> None:
    """Renewals come from a thread of their own, so a second node finds nothing to take over."""
    fleet = make_fleet(PROGRAM, lease=LEASE)
    port = free_port()
    argv = [sys.executable, "-m", "uvicorn", f"{PROGRAM}:make", "--factory", f"--port={port}", "--log-level=warning"]
    web = fleet.spawn("web", argv=argv, env={"EVENTS": str(fleet.folder / "web.events")})
    web.wait_event("node started")
    wait_until(lambda: _answers(port), within=20, what="the application")
    run = fleet.scheduler.trigger("rude", str(enough := tmp_path / "enough"))
    start = wait_until(lambda: next(iter(fleet.ledger.open("rude")), None), within=10, what="the start of the job")
    assert start.pid == web.pid
    other = fleet.start(1)[0]
    with pytest.raises(TimeoutError):
        _answers(port, timeout=0.3)  # the loop is blocked indeed: no request is served
    wait_until(
        lambda: [event for event in web.events("session renewed") if event["at"] > start.at + 3 * LEASE],
        within=30,
        what="a renewal after three leases",
    )
    enough.touch()
    view = fleet.scheduler.wait(run, "20s")
    assert (view.status, view.attempt, view.node) == ("succeeded", 1, "web")
    wait_until(lambda: _answers(port), within=10, what="the application to be back")
    end = fleet.ledger.lines("rude", "end")[0]
    renewed = [event["at"] for event in web.events("session renewed") if start.at < event["at"] < end.at]
    assert len(renewed) >= 3
    assert not web.events("session lost")
    assert not other.events("session buried")
    assert len(fleet.ledger.lines("rude", "start")) == 1
    web.term()
    web.wait()
    assert [event["clean"] for event in web.events("node stopped")] == [True], "the lifespan ended with a drain"


def _answers(port: int, timeout: float = 5.0) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read() == b"hello"
    except ConnectionRefusedError:
        return False
    finally:
        connection.close()
