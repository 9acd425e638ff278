"""An outage of the store, hundreds of jobs, three real nodes and a real receiver: one message of each kind."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from solocron.testing.fleet import Fleet, wait_until
from solocron.testing.fleet.replica import Replica
from tests.e2e.conftest import MakeFleet
from tests.servers import Postgres
from tests.unit.telemetry.https_server import Server, certificate, serving

pytestmark = pytest.mark.usefixtures("openssl")
SOON = 60

Watched = Callable[..., Fleet]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(*certificate(tmp_path)) as made:
        yield made


@pytest.fixture
def watched(make_fleet: MakeFleet, server: Server, tmp_path: Path) -> Watched:
    """Make nodes that run many jobs, look for alarms every second, and post them."""

    def make(*nodes: str, jobs: int, period: str, remembered: int, store: str | None = None) -> Fleet:
        alarms: dict[str, Any] = {"every": "1s", "late": "2s", "patience": "2s", "settle": "3s", "allow_private": True}
        alarms |= {"webhook": server.url, "secret": "a secret of the test's own"}
        options = json.dumps({"jobs": jobs, "period": period, "remembered": remembered, "alarms": alarms})
        env = {"ALARMED": options, "SSL_CERT_FILE": str(tmp_path / "certificate.pem")}
        fleet = make_fleet("tests.e2e.jobs.secondly", store=store, lease="2s", env=env)
        start(fleet, *nodes)
        return fleet

    return make


def start(fleet: Fleet, *nodes: str, failpoint: str | None = None) -> list[Replica]:
    made = []
    for node in nodes:
        program = [sys.executable, "-m", "tests.e2e.programs.alarmed", node, str(fleet.folder / f"{node}.events")]
        made.append(fleet.spawn(node, argv=program, failpoint=failpoint))
    fleet.wait_ready(made)
    return made


def ran(fleet: Fleet) -> int:
    """How many runs have ended in this fleet."""
    return sum(len(replica.events("finished")) for replica in fleet.replicas)


def posts(server: Server) -> Counter[tuple[str, str]]:
    bodies = [json.loads(posted.body) for posted in server.posted]
    return Counter((body["event"], body["kind"]) for body in bodies)


def away(postgres: Postgres, seconds: float) -> None:
    """Let the store be away for that long; the outage is what is tested, so it lasts."""
    postgres.kill9()
    try:
        threading.Event().wait(seconds)
    finally:
        postgres.start()


@pytest.mark.long
@pytest.mark.parametrize(("period", "seconds"), [("6s", 10), ("20s", 180)], ids=["for seconds", "for minutes"])
def test_an_outage_is_one_post_raised_and_one_cleared(
    watched: Watched, server: Server, postgres: Postgres, period: str, seconds: float
) -> None:
    """Before messages were grouped this was 600 posts, two for each job."""
    fleet = watched("a", "b", "c", jobs=300, period=period, remembered=12, store=postgres.fresh_url())
    wait_until(lambda: ran(fleet) >= 300, within=SOON, what="a run of each job")
    assert posts(server) == {}
    away(postgres, seconds)
    wait_until(lambda: posts(server)["alarm cleared", "missed"], within=SOON, what="the end of it")
    assert posts(server) == {("alarm", "missed"): 1, ("alarm cleared", "missed"): 1}
    first, last = (json.loads(posted.body) for posted in server.posted)
    assert (first["count"], len(first["alarms"]), first["again"]) == (300, 20, False)
    assert first["text"] == "missed: 300 jobs, such as job-000, job-001, job-002; `solocron alarms` lists them"
    assert last["text"].startswith("missed is over: 300 jobs, such as job-000, job-001, job-002, after ")
    fleet.stop()


@pytest.mark.long
@pytest.mark.parametrize("moment", ["alarm-written", "alarm"])
def test_the_death_of_the_node_that_tells_is_not_a_second_message(
    watched: Watched, server: Server, moment: str
) -> None:
    """Killed before it has written, another node tells. Killed after it, none does, and the store says so."""
    fleet = watched("a", jobs=20, period="2s", remembered=7)
    wait_until(lambda: ran(fleet) >= 20, within=SOON, what="a run of each job")
    assert fleet.stop() == [0]
    threading.Event().wait(6)  # slots are missed
    (teller,) = start(fleet, "teller", failpoint=f"{moment}:kill")
    teller.wait(within=SOON)
    assert teller.process.returncode == -9, teller.log()
    assert posts(server) == {}
    if moment == "alarm-written":
        (message,) = fleet.scheduler.open_alarms().messages
        assert (message.kind, message.node, message.delivery) == ("missed", "teller", "unknown")
    start(fleet, "b")
    wait_until(lambda: posts(server)["alarm cleared", "missed"], within=SOON, what="the end of it")
    assert posts(server)["alarm", "missed"] == (1 if moment == "alarm" else 0)
    assert set(posts(server).values()) == {1}
    fleet.stop()
