"""What the doctor says of nodes: each line is OK in a healthy fleet and turns when that very thing is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron.clock import SECOND
from solocron.doctor import fleet
from solocron.doctor.fleet import Pace
from solocron.model.documents.job import Pause
from solocron.model.documents.namespace import Namespace, Openness
from solocron.model.documents.scoped_pause import Reach, Scope, ScopedPause
from solocron.model.documents.session import Life
from solocron.model.pools import TICKED
from solocron.schedules import Cron, dump
from tests.unit.doctor.kit import NOW, dead, job, levels, only, session, sight, silent
from tests.unit.model.one_job import T0, OneJob


def known(openness: Openness = Openness.OPEN) -> Namespace:
    return Namespace(count=3, token="t", identity="server", openness=openness, since=NOW - 20 * SECOND)


def test_an_open_namespace_names_its_epoch_and_one_without_a_node_yet_says_nothing() -> None:
    found = only(fleet.namespace(sight(namespace=known()), "server"))
    assert (found.level, found.detail) == ("OK", "open, epoch 3")
    assert list(fleet.namespace(sight(), "server")) == []


def test_a_store_that_went_back_is_named_with_the_nodes_that_have_yet_to_check() -> None:
    """It used to say that the lease should be raised."""
    checked, late = session("a", epoch=known().epoch), session("b", epoch="2.older")
    found = only(fleet.namespace(sight(checked, late, namespace=known(Openness.CHECKING)), "server"))
    assert found.level == "WARN"
    assert found.detail == (
        "being checked since 20 s: the store went back, or this is another server; nothing is claimed"
    )
    assert found.remedy == "wait for b to check what it remembers"
    alone = only(fleet.namespace(sight(checked, namespace=known(Openness.CHECKING)), "server"))
    assert alone.remedy == "start a node"


def test_another_server_than_the_one_that_granted_claims_is_named() -> None:
    found = only(fleet.namespace(sight(session("a", epoch=known().epoch), namespace=known()), "standby"))
    assert (found.level, found.detail) == (
        "WARN",
        "this is not the server that granted the last claims; nothing is claimed",
    )


def test_a_loss_beyond_the_memory_of_the_nodes_is_a_failure_that_names_the_command() -> None:
    found = only(fleet.namespace(sight(namespace=known(Openness.CLOSED)), "server"))
    assert found.level == "FAIL"
    assert found.detail == "closed since 20 s: the store lost more than the nodes remember, so nothing is claimed"
    assert found.remedy == "see that the store is the right one, then run `solocron restored`"


def test_live_nodes_are_named() -> None:
    found = only(fleet.nodes(sight(job(), session("b"), session("a"))))
    assert (found.level, found.detail) == ("OK", "2 alive: a, b")


def test_no_node_beside_jobs_is_a_failure() -> None:
    found = only(fleet.nodes(sight(job(), dead())))
    assert (found.level, found.remedy) == ("FAIL", "solocron run TARGET")
    assert found.detail == "no live node serves pool default, so its 1 job does not run"
    assert only(fleet.nodes(sight())).level == "OK"


def test_a_pool_that_the_live_nodes_do_not_serve_is_named_with_the_number_of_its_jobs() -> None:
    jobs = [job("one", pool="gpu"), job("two", pool="gpu"), job("three")]
    alive, gpu = fleet.nodes(sight(*jobs, session("a")))
    assert alive.level == "OK"
    assert (gpu.level, gpu.remedy) == ("FAIL", "solocron run TARGET --pools gpu")
    assert gpu.detail == "no live node serves pool gpu, so its 2 jobs do not run"


def test_jobs_that_are_paused_or_disabled_need_no_node() -> None:
    off = job("off", pool="gpu", enabled=False)
    paused = replace(job("paused", pool="gpu"), paused=Pause(at=NOW))
    assert levels(fleet.nodes(sight(off, paused, session("a")))) == ["OK"]


def test_a_pause_of_many_jobs_is_a_warning_and_its_jobs_need_no_node() -> None:
    paused = ScopedPause(scope=Scope(Reach.POOL, "gpu"), at=NOW - 60 * SECOND, by="ana", note="new cards")
    known = Namespace(count=1, token="t", identity="i", pauses=(paused,))
    seen = replace(sight(job("one", pool="gpu"), job("two"), session("a")), namespace=known)
    found = only(fleet.pauses(seen))
    assert (found.level, found.remedy) == ("WARN", "solocron resume --pool gpu")
    assert found.detail == "pool gpu (1 now) paused 60 s ago by ana: new cards"
    assert levels(fleet.nodes(seen)) == ["OK"]
    over = replace(seen, namespace=replace(known, pauses=(replace(paused, until=NOW),)))
    assert only(fleet.pauses(over)).level == "OK"
    assert levels(fleet.nodes(over)) == ["OK", "FAIL"]


def test_a_pool_that_ticks_serve_needs_no_node_between_them() -> None:
    """Another program calls `solocron tick` from outside; what it leaves lying is overdue."""
    ticked = replace(dead(since=60), state=Life.SWEPT, reason=TICKED)
    found = only(fleet.nodes(sight(job(), ticked)))
    assert found.level == "OK"
    assert "pool default is served by ticks, the last of which ended 60 s ago" in found.detail
    node_since = replace(dead("b", since=30), state=Life.SWEPT)
    assert only(fleet.nodes(sight(job(), ticked, node_since))).level == "FAIL"


def test_a_node_that_has_just_fallen_silent_is_a_warning() -> None:
    found = only(fleet.silent_nodes(sight(session("a"), silent("b", since=3))))
    assert (found.level, found.name) == ("WARN", "silent node")
    assert "b has not renewed its lease, over since 3 s" in found.detail


def test_a_silent_node_that_no_node_buries_is_a_failure() -> None:
    found = only(fleet.silent_nodes(sight(silent("b", since=31))))
    assert found.level == "FAIL"
    assert found.remedy is not None
    assert "--repair" in found.remedy


def test_a_dead_node_that_no_node_sweeps_is_a_failure() -> None:
    assert levels(fleet.silent_nodes(sight(dead("b", since=31)))) == ["FAIL"]
    assert levels(fleet.silent_nodes(sight(dead("b", since=3)))) == []
    assert only(fleet.silent_nodes(sight(session("a")))).level == "OK"


def test_a_lease_that_is_renewed_late_is_a_warning() -> None:
    found = only(fleet.leases(sight(session("a", left=4))))
    assert found.level == "WARN"
    assert "a has renewed its lease of 15 s last 11 s ago" in found.detail
    assert only(fleet.leases(sight(session("a", left=6)))).level == "OK"


@pytest.mark.parametrize(("beat", "level"), [(4.9, "OK"), (5, "OK"), (6, "WARN"), (8, "FAIL")])
def test_a_lease_that_leaves_no_room_for_a_lost_renewal_is_told(beat: float, level: str) -> None:
    """The session says how often it was renewed since it began; the rest is a division."""
    lived = round(10 * beat * SECOND)
    renewed = session("a", left=12)
    began = renewed.expires_at - renewed.lease - lived
    found = only(fleet.leases(sight(replace(renewed, started_at=began, beats=10))))
    assert found.level == level


def test_after_two_renewals_nothing_is_said_of_their_average() -> None:
    assert only(fleet.leases(sight(session("a", beats=2)))).level == "OK"


def test_nodes_with_different_leases_are_a_warning() -> None:
    found = only(fleet.leases(sight(session("a"), session("b", lease=30 * SECOND, left=25))))
    assert found.level == "WARN"
    assert found.detail == "nodes differ: 15 s on a, 30 s on b"


@pytest.mark.parametrize(
    ("lease", "beat", "trip", "level", "remedy"),
    [
        (15, 5, 0.002, "OK", None),
        (10, 5, 0.002, "FAIL", "raise the lease to at least 15 s"),
        (15, 0, 0.002, "FAIL", "raise the lease to at least 0.3 s"),
        (0.2, 0.05, 0.002, "FAIL", "raise the lease to at least 0.3 s"),
        (15, 5, 2.0, "FAIL", "raise the lease to at least 24 s"),
    ],
)
def test_a_lease_in_question_is_judged(lease: float, beat: float, trip: float, level: str, remedy: str | None) -> None:
    found = fleet.given_lease(Pace(round(lease * SECOND), round(beat * SECOND)), trip)
    assert (found.level, found.remedy) == (level, remedy)


def test_other_releases_are_a_warning_and_are_named() -> None:
    found = only(fleet.versions(sight(session("a"), session("b", version="0.0.9")), "0.1.0"))
    assert found.level == "WARN"
    assert "0.0.9 on b" in found.detail
    assert only(fleet.versions(sight(session("a", version="0.1.0")), "0.1.0")).level == "OK"


def test_other_zone_data_are_a_warning() -> None:
    found = only(fleet.zone_data(sight(session("a", zone_data="2025b")), "2026f"))
    assert (found.level, found.detail) == ("WARN", "this machine 2026f, 2025b on a")
    assert found.remedy == "pip install -U tzdata"
    assert only(fleet.zone_data(sight(session("a", zone_data="2026f")), "2026f")).level == "OK"


def test_a_zone_that_another_node_reads_otherwise_is_named() -> None:
    one = OneJob(Cron("0 9 * * *", tz="America/Vancouver")).at(24 * 3600)
    one.finish(one.claims())
    same = one.job
    assert only(fleet.zone_data(sight(same), "2026f")).level == "OK"
    other = replace(same, nominal="2026-01-05T10:00:00")
    found = only(fleet.zone_data(sight(other), "2026f"))
    assert found.level == "WARN"
    assert "America/Vancouver differs" in found.detail


def test_a_zone_that_is_not_known_here_is_named() -> None:
    schedule = dump(Cron("0 9 * * *", tz="Europe/Paris")) | {"tz": "Mars/Base"}
    there = job()
    strange = replace(there, definition=replace(there.definition, schedule=schedule), nominal="2026-01-05T10:00:00")
    assert "Mars/Base differs" in only(fleet.zone_data(sight(strange), "2026f")).detail


def test_records_are_kept_for_as_long_as_the_live_node_that_prunes_first_keeps_them() -> None:
    day = 86_400 * SECOND
    long, short = session("a", keep=90 * day), session("b", keep=30 * day)
    gone = session("c", keep=1 * day, left=-1, started_at=T0 + SECOND)
    assert fleet.keep(sight()) is None
    assert fleet.keep(sight(session("a"))) is None
    assert fleet.keep(sight(long, session("d"))) == 90 * day
    assert fleet.keep(sight(long, short, gone)) == 30 * day
    assert fleet.keep(sight(gone, session("e", keep=7 * day, left=-1, started_at=T0))) == 1 * day
