"""What the doctor says of the nodes: who is alive, who is silent, how their leases, releases and zone data compare."""

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

__all__ = ["Pace", "given_lease", "keep", "leases", "namespace", "nodes", "silent_nodes", "versions", "zone_data"]

_ENOUGH = 3
"""Renewals from which on their average says something."""
_REPAIR = "solocron doctor --repair, or start a node"


@dataclass(frozen=True, slots=True)
class Pace:
    """A lease and its beat, in microseconds, as somebody means to use them."""

    lease: int
    beat: int


def namespace(sight: Sight, identity: str) -> Iterator[Check]:
    """Whether claims are granted, and if not, since when and what ends it."""
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
        told = f"being checked since {since}: the store went back, or another server answers; nothing is claimed"
        if known.openness is not Openness.CHECKING:
            told = "another server answers than the one that granted the last claims; nothing is claimed"
        remedy = f"wait for {listed(sorted(waiting))} to check what it remembers" if waiting else "start a node"
        yield warn("namespace", told, remedy)
    else:
        yield ok("namespace", f"open, epoch {known.count}")


def nodes(sight: Sight) -> Iterator[Check]:
    """Who is alive, and which pools have jobs that no node would run."""
    live, missing = sight.live, unserved(sight.jobs, sight.sessions, now=sight.now)
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
    """A lease may run out for a moment; one that nobody buries for two more has nobody left who would."""
    for session in sight.silent:
        since = sight.now - session.expires_at
        told = f"{session.node} has not renewed its lease, over since {seconds(since)}"
        if since > 2 * session.lease:
            yield fail("silent node", f"{told}; nobody has taken its runs over", _REPAIR)
        else:
            yield warn("silent node", f"{told}; its runs are taken over within one more lease", "look at its log")
    for session in sight.unswept:
        since = sight.now - (session.ended_at or sight.now)
        if since > 2 * session.lease:
            told = f"{session.node} ended {seconds(since)} ago ({session.reason or 'no reason given'})"
            yield fail("silent node", f"{told}; nobody has taken its runs over", _REPAIR)
    if not sight.silent and not sight.unswept:
        yield ok("silent node", "none")


def leases(sight: Sight) -> Iterator[Check]:
    """A node that renews in time has more than a third of its lease left at any moment."""
    if sight.namespace is not None and sight.namespace.openness is not Openness.OPEN:
        return  # what the store says of leases may be of an earlier time
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
    """A node renews three times within its lease; one that does so only twice loses its session with one renewal."""
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
    """A lease and a beat that somebody means to use: one lost renewal must not cost the session."""
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
    others = _grouped(sight, "version", mine)
    if others:
        yield warn("version", f"this machine {mine}, {others}", "finish the deployment: pip install -U solocron")
    else:
        yield ok("version", mine)


def keep(sight: Sight) -> int | None:
    """For how long records are kept: the live nodes prune, each by its own time, so the shortest counts.

    Where no node lives, the last one that did says so; None where no node ever has.
    """
    live = [session.keep for session in sight.live if session.keep is not None]
    ever = [(session.started_at, session.keep) for session in sight.sessions if session.keep is not None]
    return min(live) if live else max(ever)[1] if ever else None


def zone_data(sight: Sight, mine: str) -> Iterator[Check]:
    """Nodes with other rules still agree on what has been decided; but they start the same slot at other instants."""
    others = _grouped(sight, "zone_data", mine)
    differ = sorted({zone for job in sight.jobs for zone in _read_otherwise(job)})
    told = f"; {listed(differ)} differs" if differ else ""
    if others or differ:
        where = others or "whoever decided last"
        yield warn("zone data", f"this machine {mine}, {where}{told}", "pip install -U tzdata")
    else:
        yield ok("zone data", mine)


def _grouped(sight: Sight, attribute: str, mine: str) -> str:
    """ "2026a on node-b, node-c" for every value that is not ours."""
    found: dict[str, list[str]] = {}
    for session in sight.live:
        value = str(getattr(session, attribute)) or "unknown"
        if value != mine:
            found.setdefault(value, []).append(session.node)
    return "; ".join(f"{value} on {listed(sorted(names))}" for value, names in sorted(found.items()))


def _read_otherwise(job: Job) -> Iterator[str]:
    """The zone of a job whose last decided slot has another local reading by our rules than by its node's."""
    spec = job.definition.schedule or {}
    if job.nominal is None or "tz" not in spec:
        return
    try:
        reading = Registry().resolve(spec).nominal(job.cursor)
    except InvalidError:  # a zone that only the other has
        yield str(spec["tz"])
        return
    if reading is not None and reading != job.nominal:
        yield str(spec["tz"])
