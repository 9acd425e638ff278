"""Each cell and each number against the file that the bodies write themselves: clock changes, a backfill, dead nodes.

A fleet of the shipped engine on simulated time goes through the night in which the clocks change. What it leaves is
laid into a store whose clock shows the same morning, and the service tells of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from solocron import Run, cron, every
from solocron.client import Client
from solocron.service.handle import Service
from solocron.service.roles import Role
from solocron.service.routes import API
from solocron.stores.memory import MemoryStore
from solocron.testing.clock import ManualClock
from solocron.testing.cluster import Cluster
from solocron.testing.conformance.kit import put
from tests.unit.service.browsing import HTML
from tests.unit.service.kit import World, tokens

JOBS = ("hourly", "nightly", "often", "long")
VIENNA = ZoneInfo("Europe/Vienna")
HOURS = 9
NIGHTS = {
    "spring": datetime(2026, 3, 28, 20, 0, tzinfo=UTC),  # 02:00 to 03:00 does not come
    "autumn": datetime(2026, 10, 24, 20, 0, tzinfo=UTC),  # 02:00 to 03:00 comes twice
}

_cluster: list[Cluster] = []
_file: list[Path] = []


@contextmanager
def written(run: Run) -> Iterator[None]:
    """Let a body write its own beginning and its own end, as a program would into a table of its own."""

    def write(what: str) -> None:
        line = {"what": what, "job": run.job, "slot": run.slot.isoformat(), "run": run.id, "attempt": run.attempt}
        with _file[-1].open("a") as file:
            file.write(json.dumps(line) + "\n")

    write("begin")
    try:
        yield
    except Exception:
        write("raise")
        raise
    write("end")


@cron("15 * * * *", name="hourly", tz="Europe/Vienna", retries=3)
def hourly(run: Run) -> None:
    """Work long enough to be killed and frozen in the middle."""
    with written(run):
        _cluster[-1].sleep("6m")


@cron("30 2 * * *", name="nightly", tz="Europe/Vienna")
def nightly(run: Run) -> None:
    """Come at a time that does not exist, or that exists twice."""
    with written(run):
        _cluster[-1].sleep("1m")


@cron("*/20 * * * *", name="often", retries=1)
def often(run: Run) -> None:
    """Fail at every sixth hour altogether, and at the full hour the first time."""
    with written(run):
        _cluster[-1].sleep("10s")
        if run.slot.hour % 6 == 0 or (run.slot.minute == 0 and run.attempt == 1):
            raise ValueError("as told")


@every("20m", name="long", overlap="skip")
def long(run: Run) -> None:
    """Take longer than its period: slots are skipped, and a backfill makes up for them."""
    with written(run):
        late = _cluster[-1].now - run.slot > timedelta(hours=1)
        _cluster[-1].sleep("10s" if late else "25m")


@dataclass(frozen=True)
class Line:
    """What a body wrote."""

    what: str
    job: str
    slot: datetime
    run: str
    attempt: int


@dataclass(frozen=True)
class Morning:
    """The service on the morning after, and the lines of the bodies."""

    world: World
    lines: list[Line]
    begin: datetime
    now: datetime

    def get(self, path: str, **query: str) -> Any:
        asked = "&".join(f"{key}={value.replace('+', '%2B')}" for key, value in query.items())
        return self.world.ask(API + path, role=Role.OPERATE, query=asked).json

    def cells(self, job: str) -> dict[datetime, dict[str, Any]]:
        """Return every slot since the beginning that has come due, as the API tells it."""
        told = self.get(f"/jobs/{job}/slots", **{"from": self.begin.isoformat(), "to": self.now.isoformat()})
        found = {datetime.fromisoformat(one["slot"]): one for one in told["slots"]}
        return {slot: one for slot, one in found.items() if one["status"] not in ("to come", "not defined")}

    def of(self, job: str) -> dict[datetime, list[Line]]:
        """Return the lines of the bodies of a job by slot."""
        found = defaultdict[datetime, list[Line]](list)
        for line in self.lines:
            if line.job == job:
                found[line.slot].append(line)
        return found


def fate(lines: list[Line]) -> str:
    """Return what became of a slot by what its bodies wrote: those of the run that began last."""
    if not lines:
        return "skipped"
    last = [one for one in lines if one.what == "begin"][-1].run
    ends = {one.what for one in lines if one.run == last}
    return "succeeded" if "end" in ends else "failed" if "raise" in ends else "running"


def night_of(begin: datetime, file: Path) -> Morning:
    """Let a fleet go through a night: a node is frozen past its lease, one is killed, slots are backfilled."""
    cluster = Cluster(hourly, nightly, often, long, nodes=3, start=begin, lease="3m")
    _cluster.append(cluster)
    _file.append(file)
    cluster.run("10m")
    for hurt in ("freeze", "kill"):
        while not cluster.job("hourly").active:
            cluster.run("1m")
        holder = cluster.job("hourly").active[0].node
        number = next(one for one in range(3) if cluster.process(one).name == holder)
        getattr(cluster, hurt)(number)
        cluster.run("10m")
        if hurt == "freeze":
            cluster.thaw(number)
            cluster.run("50m")
        else:
            cluster.start(number)
    cluster.run_until(begin + timedelta(hours=HOURS - 1))
    asked = cluster.member(0)
    span = (begin + timedelta(hours=1), begin + timedelta(hours=5))
    asked.process.spawn(lambda: asked.scheduler.backfill("long", *span, only="missed", rate="30/m"), "operator")
    cluster.run_until(begin + timedelta(hours=HOURS, minutes=2))
    clock = ManualClock(cluster.now)
    store: MemoryStore = clock.store()
    store.open()
    put(
        store,
        *(doc for doc, _ in cluster.fleet.database.docs.values()),
        records=tuple(cluster.fleet.database.log.values()),
    )
    service = Service(Client(store), tokens=tokens())
    told = map(json.loads, file.read_text().splitlines())
    lines = [Line(**{**one, "slot": datetime.fromisoformat(one["slot"])}) for one in told]
    return Morning(World(None, service), lines, begin, cluster.now)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=NIGHTS)
def morning(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Morning:
    return night_of(NIGHTS[request.param], tmp_path_factory.mktemp(request.param) / "bodies")


def expected(morning: Morning, job: str) -> set[datetime]:
    """Return the slots that the clocks on the wall want, counted here minute by minute."""
    found = set[datetime]()
    at = morning.begin + timedelta(minutes=1)
    while at <= morning.now:
        local = at.astimezone(VIENNA)
        wanted = {
            "hourly": local.minute == 15,
            "often": at.minute % 20 == 0,
            # The first of two; and what does not come is made up for when the clocks have gone on.
            "nightly": (local.hour, local.minute, local.fold) == (2, 30, 0)
            or ((local.hour, local.minute) == (3, 0) and (local - timedelta(hours=1)).astimezone(UTC) == at),
        }
        if wanted[job]:
            found.add(at)
        at += timedelta(minutes=1)
    return found


@pytest.mark.parametrize("job", ["hourly", "nightly", "often"])
def test_the_cells_are_the_slots_that_the_clocks_on_the_wall_have(morning: Morning, job: str) -> None:
    assert morning.cells(job).keys() == expected(morning, job)


@pytest.mark.parametrize("job", JOBS)
def test_each_cell_is_what_the_bodies_wrote(morning: Morning, job: str) -> None:
    cells, written = morning.cells(job), morning.of(job)
    assert written.keys() <= cells.keys()
    for slot, cell in cells.items():
        begun = [one for one in written[slot] if one.what == "begin"]
        assert cell["status"] == fate(written[slot]), (slot, cell)
        assert cell["run"] == (begun[-1].run if begun else None), (slot, cell)
        assert cell["attempts"] == (begun[-1].attempt if begun else 0), (slot, cell)


def test_a_slot_that_was_made_up_for_is_a_cell_of_the_backfill(morning: Morning) -> None:
    cells, written = morning.cells("long"), morning.of("long")
    late = {slot for slot, cell in cells.items() if cell["origin"] == "backfill"}
    quick = timedelta(minutes=1)
    assert late == {
        slot for slot, cell in cells.items() if written[slot] and timedelta(seconds=cell["took_s"] or 9e9) < quick
    }
    assert len(late) >= 4
    page = morning.world.ask("/jobs/long", role=Role.READ, accept=HTML).response.body.decode()
    assert len(re.findall(r'class="cell [^"]*\basked\b', page)) == len(late)


def test_each_number_of_the_accounting_is_what_the_bodies_wrote(morning: Morning) -> None:
    """A slot that was skipped and made up for later counts as what became of it in the end."""
    truth = Counter[str]()
    cut_off = twice = 0
    for job in JOBS:
        written = morning.of(job)
        truth.update(fate(written[slot]) for slot in morning.cells(job))
        for run in {one.run for one in morning.lines if one.job == job}:
            lines = [one for one in morning.lines if one.run == run]
            starts = sum(one.what == "begin" for one in lines)
            raised = sum(one.what == "raise" for one in lines)
            ended = sum(one.what == "end" for one in lines)
            twice += ended > 1
            cut_off += starts - raised - min(ended, 1) - (fate(lines) == "running")
    told = morning.get("/accounting")
    assert told["counts"] == dict(truth)
    assert (told["due"], told["missing"], told["checked_jobs"]) == (truth.total(), 0, len(JOBS))
    assert (told["taken_over"], told["done_twice"]) == (cut_off, twice) == (2, 1), "one was frozen, one was killed"
    page = morning.world.ask("/", role=Role.READ, accept=HTML).response.body.decode()
    assert f"{truth.total()} slots came due in the last 24 hours." in page
    assert "Every one is accounted for." in page
    for status, words in (("succeeded", "ran once"), ("failed", "failed"), ("skipped", "skipped by choice")):
        assert re.search(rf"<b>{truth[status]}</b>(<a[^>]*>)?{words}", page), status


def test_the_picture_has_two_slots_in_the_hour_that_comes_twice_and_none_in_the_one_that_does_not(
    morning: Morning,
) -> None:
    """An hour that does not come is crossed only where other days have it: this job is not a day old."""
    page = morning.world.ask("/jobs/hourly", role=Role.READ, accept=HTML).response.body.decode()
    autumn = morning.begin.month == 10
    assert ('class="cell two"' in page) == autumn
    assert bool(re.search(r"Sun \d+ (Mar|Oct) 02:15", page)) == autumn
    assert re.search(r"Sun \d+ (Mar|Oct) 03:15", page)
