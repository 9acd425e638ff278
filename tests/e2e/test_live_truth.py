"""What an open page is told is what happened: a fleet on PostgreSQL, a node killed, another frozen past its lease.

Everything is asked over HTTP, as a browser would. The bodies' own files are the truth that it is compared with.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from solocron.testing.fleet import Fleet, Line, wait_until
from tests.e2e.conftest import MakeFleet
from tests.servers import Postgres

LEASE = 2.0
TOLD_WITHIN = LEASE + 3.0


class Served:
    """`solocron serve` on a store, and a stream of what it tells."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self.events: list[tuple[float, str, dict[str, Any]]] = []
        """Arrival, name and data of each event."""
        self._begun = threading.Event()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        assert self._begun.wait(30)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self._request(path), timeout=30) as answer:
            return json.load(answer)

    def _request(self, path: str) -> urllib.request.Request:
        return urllib.request.Request(f"{self.url}api/v1/{path}", headers=self._headers)

    def _listen(self) -> None:
        name = ""
        with urllib.request.urlopen(self._request("events?topics=runs,nodes,accounting"), timeout=60) as stream:
            for line in stream:
                kind, _, text = line.decode().strip().partition(": ")
                if kind == "event":
                    name = text
                elif kind == "data":
                    self.events.append((time.monotonic(), name, json.loads(text)))
                    self._begun.set()

    def told(self, run: str, attempt: int, since: float) -> float | None:
        """Return when the stream first told of an attempt, in seconds after `since`."""
        for at, _, data in list(self.events):
            if any((one["run"], one["attempt"]) == (run, attempt) for one in data.get("runs", ())):
                return at - since
        return None

    def told_topic(self, topic: str, since: float) -> bool:
        return any(at > since and topic in data.get("topics", ()) for at, _, data in list(self.events))

    def join(self) -> None:
        self._reader.join(30)
        assert not self._reader.is_alive()


@contextmanager
def served(store: str, folder: Path) -> Iterator[Served]:
    run = [sys.executable, "-m", "solocron"]
    made = [*run, "token", "new", "ana", "--token-file", str(folder / "tokens")]
    token = subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()
    argv = [*run, "--store", store, "serve", "--port", "0", "--token-file", str(folder / "tokens")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        try:
            found = Served(process.stdout.readline().strip(), token)
            yield found
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=30)
            found.join()
        finally:
            process.kill()
    assert process.returncode == 0, log
    assert found.events[-1][1] == "bye"


def busy(fleet: Fleet) -> Line:
    """Wait for a body that has just begun on a living replica."""

    def look() -> Line | None:
        pids = {replica.pid for replica in fleet.alive() if not replica.frozen}
        return next((line for line in reversed(fleet.ledger.open("slow")) if line.pid in pids), None)

    return wait_until(look, within=20, what="a slow run")


def next_attempt(fleet: Fleet, victim: Line) -> Line:
    def look() -> Line | None:
        starts = fleet.ledger.lines("slow", "start")
        return next((one for one in starts if one.run == victim.run and one.attempt == victim.attempt + 1), None)

    return wait_until(look, within=20, what="its next attempt")


@pytest.mark.alone
def test_an_open_page_is_told_of_a_takeover_in_time_and_the_accounting_is_the_truth(
    make_fleet: MakeFleet, postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.fresh_url()
    fleet = make_fleet("tests.e2e.jobs.slow", store=url, lease=LEASE)
    fleet.start(4)
    with served(url, tmp_path) as page:
        # --- a node is killed: the takeover, with both fences
        killed = busy(fleet)
        begun = time.monotonic()
        fleet.of(killed.node).kill()
        took = wait_until(
            lambda: page.told(killed.run, killed.attempt + 1, begun), within=20, what="the takeover on the stream"
        )
        assert took <= TOLD_WITHIN
        heir = next_attempt(fleet, killed)
        (taken,) = [one for one in page.get("timeline")["takeovers"] if one["run"] == killed.run]
        assert (taken["lost_by"], taken["lost_fence"]) == (killed.node, killed.fence)
        assert (taken["taken_by"], taken["taken_fence"]) == (heir.node, heir.fence)
        assert taken["taken_fence"] > taken["lost_fence"]

        # --- another is frozen past its lease, and wakes up with a result that is refused
        frozen = busy(fleet)
        fleet.freeze(fleet.of(frozen.node))
        heir = next_attempt(fleet, frozen)
        begun = time.monotonic()
        fleet.of(frozen.node).thaw()

        def refused() -> Any:
            lanes = {lane["name"]: lane for lane in page.get("timeline")["lanes"]}
            marks = lanes[frozen.node]["marks"]
            return [mark for mark in marks if mark["kind"] == "refused" and mark["run"] == frozen.run]

        (mark,) = wait_until(refused, within=20, what="the refused result", pause=0.2)
        assert time.monotonic() - begun <= TOLD_WITHIN
        assert (mark["fence"], mark["outcome"]) == (frozen.fence, "succeeded")
        assert heir.fence > frozen.fence

        # --- the accounting is what the bodies themselves have written
        assert fleet.stop() == [0, 0, 0]
        ends = Counter(line.run for line in fleet.ledger.lines("slow", "end"))
        # The body that was frozen and the one that took over both came to their ends: it ran twice, and that is known.
        truth = (len(ends), sum(count > 1 for count in ends.values()))
        assert truth[1] >= 1
        sums = wait_until(lambda: _settled(page, truth), within=20, what=f"the accounting {truth}", pause=0.2)
        assert (sums["missing"], sums["unaccounted"], sums["checked_jobs"]) == (0, [], sums["of_jobs"])
        assert sums["taken_over"] >= 2
        assert sums["due"] == sum(sums["counts"].values())

        # --- a record is removed by hand: one slot is missing, and the page is told
        begun = time.monotonic()
        with psycopg.connect(url) as connection:
            gone = connection.execute("DELETE FROM solocron_runs WHERE run = %s RETURNING slot", (heir.run,)).fetchall()
        assert {slot for (slot,) in gone} == {frozen.slot}
        red = wait_until(lambda: _missing(page), within=20, what="the missing slot", pause=0.2)
        assert (red["missing"], [job for job, _ in red["unaccounted"]]) == (1, ["slow"])
        wait_until(lambda: page.told_topic("accounting", begun), within=20, what="the news on the stream")


def _settled(page: Served, truth: tuple[int, int]) -> Any:
    sums = page.get("accounting")
    return sums if (sums["counts"].get("succeeded"), sums["done_twice"]) == truth else None


def _missing(page: Served) -> Any:
    sums = page.get("accounting")
    return sums if sums["missing"] else None
