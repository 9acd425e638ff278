"""Lines about the nodes: alive, silent, and how their leases, releases and zone data compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from solocron.clock import SECOND
from solocron.doctor.line import fail, listed, ok, seconds, warn
from solocron.doctor.sight import Sight
from solocron.errors import InvalidError
from solocron.jobs.registry import Registry
from solocron.model.documents.job import Job
from solocron.model.documents.namespace import Openness
from solocron.model.documents.session import Session
from solocron.model.pools import last_tick, unserved
from solocron.stores.contract import Check

__all__ = [
    "Pace",
    "given_lease",
    "keep",
    "leases",
    "namespace",
    "nodes",
    "pauses",
    "silent_nodes",
    "versions",
    "zone_data",
]

_ENOUGH = 3
"""Renewals needed before their average is meaningful."""
_REPAIR = "solocron doctor --repair, or start a node"


@dataclass(frozen=True, slots=True)
class Pace:
    """A lease and its beat, in microseconds, that the user plans to use."""

    lease: int
    beat: int


def namespace(sight: Sight, identity: str) -> Iterator[Check]:
    """Say whether claims are granted; if not, since when and what ends it."""
    known = sight.namespace
    if known is None:
        return
    since = seconds(sight.now - known.since)
    if known.openness is Openness.CLOSED:
        yield fail(
            "namespace",
            f"closed since {since}: the store lost more than the nodes remember, so nothing is claimed",
            "see that the store is the right one, then run `solocron restored`",
        )
    elif known.openness is Openness.CHECKING or known.identity != identity:
        waiting = [session.node for session in sight.live if session.epoch != known.epoch]
        told = f"being checked since {since}: the store went back, or this is another server; nothing is claimed"
        if known.openness is not Openness.CHECKING:
            told = "this is not the server that granted the last claims; nothing is claimed"
        remedy = f"wait for {listed(sorted(waiting))} to check what it remembers" if waiting else "start a node"
        yield warn("namespace", told, remedy)
    else:
        yield ok("namespace", f"open, epoch {known.count}")


def pauses(sight: Sight) -> Iterator[Check]:
    """Report the pauses of many jobs: what they cover does not run by schedule, and a forgotten one is an outage."""
    for one in sight.pauses:
        count = sum(one.scope.covers(job) for job in sight.jobs if not job.removed)
        by = f" by {one.by}" if one.by else ""
        until = "" if one.until is None else f", for another {seconds(one.until - sight.now)}"
        note = f": {one.note}" if one.note else ""
        yield warn(
            "pauses",
            f"{one.scope} ({count} now) paused {seconds(sight.now - one.at)} ago{by}{until}{note}",
            f"solocron resume {one.scope.option}",
        )
    if not sight.pauses:
        yield ok("pauses", "no pause of many jobs stands")


def nodes(sight: Sight) -> Iterator[Check]:
    """Say which nodes are alive, and which pools have jobs that no node would run."""
    wanted = [job for job in sight.jobs if not sight.is_paused(job)]
    live, missing = sight.live, unserved(wanted, sight.sessions, now=sight.now)
    if live:
        yield ok("nodes", f"{len(live)} alive: {listed(sorted(session.node for session in live))}")
    for pool, names in missing.items():
        many = f"{len(names)} jobs do" if len(names) > 1 else "1 job does"
        flag = "" if pool == "default" else f" --pools {pool}"
        yield fail("nodes", f"no live node serves pool {pool}, so its {many} not run", f"solocron run TARGET{flag}")
    if not live and not missing:
        yield ok("nodes", f"none is alive{_served_by_ticks(sight)}")


def _served_by_ticks(sight: Sight) -> str:
    ticks = {pool: last_tick(pool, sight.sessions) for pool in {job.definition.pool for job in sight.jobs}}
    told = [
        f"pool {pool} is served by ticks, the last of which ended {seconds(sight.now - at)} ago"
        for pool, at in sorted(ticks.items())
        if at is not None
    ]
    return f"; {'; '.join(told)}" if told else ", and no job wants to run"


def silent_nodes(sight: Sight) -> Iterator[Check]:
    """Report sessions past their lease. Two leases later they should be buried: no node is left to do it."""
    for session in sight.silent:
        since = sight.now - session.expires_at
        told = f"{session.node} has not renewed its lease, over since {seconds(since)}"
        if since > 2 * session.lease:
            yield fail("silent node", f"{told}; no node has taken its runs over", _REPAIR)
        else:
            yield warn("silent node", f"{told}; its runs are taken over within one more lease", "look at its log")
    for session in sight.unswept:
        since = sight.now - (session.ended_at or sight.now)
        if since > 2 * session.lease:
            told = f"{session.node} ended {seconds(since)} ago ({session.reason or 'no reason given'})"
            yield fail("silent node", f"{told}; no node has taken its runs over", _REPAIR)
    if not sight.silent and not sight.unswept:
        yield ok("silent node", "none")


def leases(sight: Sight) -> Iterator[Check]:
    """Report late renewals: a node that renews in time always has more than a third of its lease left."""
    if sight.namespace is not None and sight.namespace.openness is not Openness.OPEN:
        return  # the leases in the store may be old
    tight = [session for session in sight.live if session.expires_at - sight.now < session.lease // 3]
    for session in tight:
        since = session.lease - (session.expires_at - sight.now)
        yield warn(
            "lease",
            f"{session.node} has renewed its lease of {seconds(session.lease)} last {seconds(since)} ago: it is late",
            "look at its log for failed renewals; raise its lease if the store is slow",
        )
    slow = [check for session in sight.live for check in _ratio(session)]
    yield from slow
    kinds = sorted({session.lease for session in sight.live})
    if len(kinds) > 1:
        told = ", ".join(f"{seconds(kind)} on {listed(_with(sight, kind))}" for kind in kinds)
        yield warn("lease", f"nodes differ: {told}", "give every node the same lease")
    if not tight and not slow and len(kinds) == 1:
        yield ok("lease", f"{seconds(kinds[0])} on every node, all renewed in time")


def _ratio(session: Session) -> Iterator[Check]:
    """Report a node that renews less than three times a lease: one lost renewal may cost its session."""
    if session.beats < _ENOUGH:
        return
    beat = (session.expires_at - session.lease - session.started_at) // session.beats
    told = f"{session.node} has a lease of {seconds(session.lease)} and renewed it every {seconds(beat)} on average"
    remedy = f"raise its lease to at least {seconds(3 * beat)}, or look for what holds its renewals up"
    if 2 * beat > session.lease:
        yield fail("lease", f"{told}: one lost renewal would cost the session", remedy)
    elif 3 * beat > session.lease:
        yield warn("lease", f"{told}: later than it should", remedy)


def _with(sight: Sight, lease: int) -> list[str]:
    return sorted(session.node for session in sight.live if session.lease == lease)


def given_lease(pace: Pace, round_trip: float) -> Check:
    """Judge a planned lease and beat: one lost renewal must not cost the session."""
    told = f"{seconds(pace.lease)}, beat {seconds(pace.beat)}"
    least = max(3 * pace.beat, 300_000)
    if pace.lease < 300_000:
        return fail("given lease", f"{told}: below 0.3 s no node starts", "raise the lease to at least 0.3 s")
    if pace.beat <= 0 or pace.lease < 3 * pace.beat:
        return fail(
            "given lease",
            f"{told}: one lost renewal would cost the session",
            f"raise the lease to at least {seconds(least)}",
        )
    if round_trip * SECOND > pace.beat / 4:
        return fail(
            "given lease",
            f"{told}: the store takes {round_trip:.3g} s for one round trip",
            f"raise the lease to at least {round_trip * 12:.3g} s",
        )
    return ok("given lease", f"{told}: one lost renewal costs nothing")


def versions(sight: Sight, mine: str) -> Iterator[Check]:
    """Report nodes of another release."""
    others = _grouped(sight, "version", mine)
    if others:
        yield warn("version", f"this machine {mine}, {others}", "finish the deployment: pip install -U solocron")
    else:
        yield ok("version", mine)


def keep(sight: Sight) -> int | None:
    """Return for how long records are kept: live nodes prune, each by its own time, so the shortest counts.

    Where no node lives, the last one that did says so; None where no node ever has.
    """
    live = [session.keep for session in sight.live if session.keep is not None]
    ever = [(session.started_at, session.keep) for session in sight.sessions if session.keep is not None]
    return min(live) if live else max(ever)[1] if ever else None


def zone_data(sight: Sight, mine: str) -> Iterator[Check]:
    """Report nodes with other zone data: they agree on decided slots, but start later ones at other instants."""
    others = _grouped(sight, "zone_data", mine)
    differ = sorted({zone for job in sight.jobs for zone in _read_otherwise(job)})
    told = f"; {listed(differ)} differs" if differ else ""
    if others or differ:
        where = others or "the node that decided last"
        yield warn("zone data", f"this machine {mine}, {where}{told}", "pip install -U tzdata")
    else:
        yield ok("zone data", mine)


def _grouped(sight: Sight, attribute: str, mine: str) -> str:
    """Return such as "2026a on node-b, node-c" for every value that differs from ours."""
    found: dict[str, list[str]] = {}
    for session in sight.live:
        value = str(getattr(session, attribute)) or "unknown"
        if value != mine:
            found.setdefault(value, []).append(session.node)
    return "; ".join(f"{value} on {listed(sorted(names))}" for value, names in sorted(found.items()))


def _read_otherwise(job: Job) -> Iterator[str]:
    """Yield the zone of a job whose last decided slot reads differently by our zone data than by its node's."""
    spec = job.definition.schedule or {}
    if job.nominal is None or "tz" not in spec:
        return
    try:
        reading = Registry().resolve(spec).nominal(job.cursor)
    except InvalidError:  # only the other node has this zone
        yield str(spec["tz"])
        return
    if reading is not None and reading != job.nominal:
        yield str(spec["tz"])
