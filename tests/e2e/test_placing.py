"""Real processes, killed again and again: no shard twice or lost, no limit exceeded, a part for every node."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from solocron.clock import SystemClock
from solocron.model.documents.run import ENDED, Record
from solocron.stores.contract import Query
from solocron.testing.fleet import Fleet, Line, wait_until
from tests.e2e.conftest import MakeFleet

LEASE = 2.0
_boot = SystemClock().boot


@pytest.mark.parametrize("kills", [3, pytest.param(15, marks=pytest.mark.long)])
def test_shards_limits_and_nodes_survive_kill_9(make_fleet: MakeFleet, kills: int) -> None:
    fleet = make_fleet("tests.e2e.jobs.placed", lease=LEASE)
    fleet.start(4)
    since = fleet.scheduler.open().store.clock()
    for _ in range(kills):
        _wait_for_bodies(fleet)
        fleet.alive()[0].kill()
        fleet.start(1)
    peace = fleet.scheduler.open().store.clock()
    wait_until(lambda: _everywhere(fleet, peace) >= 4, within=60, what="slots in peace, in which every node has a part")
    until = fleet.scheduler.open().store.clock()
    wait_until(lambda: not _open(fleet, since, until), within=60, what="every slot to have its last word")
    permits = [limit for limit in fleet.scheduler.limits() if limit.name == "scarce"]
    assert [limit.most for limit in permits] == [2]
    assert set(fleet.stop()) == {0}
    lines, log = fleet.ledger.lines(), _log(fleet)
    _judge_shards(lines, log, "sharded", ("eu", "us", "apac"), since, until)
    _judge_shards(lines, log, "scarce-two", ("0", "1"), since, until)
    _judge_shards(lines, log, "scarce-one", (None,), since, until)
    _judge_limit(fleet, lines)
    _judge_nodes(fleet, lines, log, since, until)
    assert [limit.taken for limit in fleet.scheduler.limits()] == [()], "a permit leaked"


def _wait_for_bodies(fleet: Fleet) -> None:
    """Until the node that is to die runs something, with new runs since the last death."""
    said = len(fleet.ledger.lines())
    victim = fleet.alive()[0].pid
    wait_until(
        lambda: len(fleet.ledger.lines()) > said + 20 and any(line.pid == victim for line in fleet.ledger.open()),
        within=60,
        what="bodies on the node that is to die",
    )


def _everywhere(fleet: Fleet, since: int) -> int:
    """How many slots that are for all nodes some node has ended since then."""
    return len({line.slot for line in fleet.ledger.lines("everywhere", "end") if line.slot > since})


def _log(fleet: Fleet) -> list[Record]:
    return list(fleet.scheduler.open().store.history(Query(limit=1_000_000)).records)


def _open(fleet: Fleet, since: int, until: int) -> list[str]:
    """What is due in the window and has no last word yet."""
    last: dict[str, Record] = {}
    for record in _log(fleet):
        if record.run not in last or record.attempt > last[record.run].attempt:
            last[record.run] = record
    ended = Counter((r.job, r.slot) for r in last.values() if r.status == "succeeded")
    found = [run for run, record in last.items() if record.status not in ENDED or record.status in ("lost", "failed")]
    for job, parts in (("sharded", 3), ("scarce-two", 2), ("scarce-one", 1)):
        found += [f"{job} {slot}" for slot in _slots(since, until, 1) if ended[(job, slot)] < parts]
    return [run for run in found if not run.startswith("everywhere")]


def _slots(since: int, until: int, period: int) -> list[int]:
    step = period * 1_000_000
    return list(range((since // step + 1) * step, until + 1, step))


def _judge_shards(
    lines: list[Line], log: list[Record], job: str, labels: tuple[str | None, ...], since: int, until: int
) -> None:
    """Each shard of each slot: one accepted result, and no attempt of it started twice."""
    done = Counter(record.key for record in log if record.job == job and record.status == "succeeded")
    starts = Counter((line.run, line.attempt) for line in lines if line.job == job and line.event == "start")
    runs: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        runs[line.key].add(line.run)
    assert [who for who, count in starts.items() if count > 1] == [], "an attempt started twice"
    assert [key for key, count in done.items() if count > 1] == [], "a shard succeeded twice"
    assert [key for key, found in runs.items() if len(found) > 1 and key.startswith(f"{job}@")] == []
    for slot in _slots(since, until, 1):
        keys = [record.key for record in log if record.job == job and record.slot == slot]
        for label in labels:
            mine = [key for key in keys if label is None or key.endswith(f"#{label}")]
            assert any(done[key] for key in mine), f"{job} {slot} shard {label} was lost"


def _judge_limit(fleet: Fleet, lines: list[Line]) -> None:
    """At no moment do more than two bodies run; one that was killed ends with its process."""
    killed = {incident.pid: incident.at for incident in fleet.incidents if incident.kind == "kill"}
    moments: list[tuple[float, int, str]] = []
    for line in lines:
        if line.job.startswith("scarce"):
            moments.append((line.at, 1 if line.event == "start" else -1, line.run))
    for line in fleet.ledger.open():
        if line.job.startswith("scarce"):
            moments.append((killed[line.pid], -1, line.run))
    running = most = 0
    for _, change, _ in sorted(moments):
        running += change
        most = max(most, running)
    assert most == 2, f"{most} ran at once, 2 may"


def _judge_nodes(fleet: Fleet, lines: list[Line], log: list[Record], since: int, until: int) -> None:
    """Each node that lived around a slot ran it once; every part has a last word; no node ran one twice."""
    starts = Counter((line.slot, line.node) for line in lines if line.job == "everywhere" and line.event == "start")
    assert [part for part, count in starts.items() if count > 1] == [], "a node ran a slot twice"
    last: dict[str, Record] = {}
    for record in log:
        if record.job == "everywhere" and (record.run not in last or record.attempt > last[record.run].attempt):
            last[record.run] = record
    assert [record.run for record in last.values() if record.status not in ENDED] == []
    ahead = fleet.scheduler.open().store.clock() / 1e6 - _boot()
    killed = {incident.node: incident.at for incident in fleet.incidents if incident.kind == "kill"}
    first = {replica.node: replica.events("node started")[0]["at"] for replica in fleet.replicas}
    checked = 0
    for slot in _slots(since, until, 2):
        at = slot / 1e6 - ahead
        for node, began in first.items():
            if began < at - 1 and killed.get(node, at + 100) > at + 3 and slot < until - 3_000_000:
                checked += 1
                assert starts[(slot, node)] == 1, f"{node} lived around {slot} and has no part of it"
    assert checked >= 4
