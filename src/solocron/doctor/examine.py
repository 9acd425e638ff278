"""Examine the store, the fleet and the jobs. A store that does not respond is one FAIL, not an exception."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from solocron.clock import SECOND
from solocron.doctor import fleet, work
from solocron.doctor.alarms import alarms
from solocron.doctor.carriers import carriers
from solocron.doctor.fleet import Pace
from solocron.doctor.line import FAIL, fail, ok, warn
from solocron.doctor.sight import look
from solocron.duration import format_duration
from solocron.errors import StoreError
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.runtime import Runtime
from solocron.schedules import zone_data_version
from solocron.stores.contract import Check, Named, Query, Store, Tier, Verdict
from solocron.version import __version__

__all__ = ["Circumstances", "empty", "examine", "failed", "unreachable"]

_ROUNDS = 5
_BEHIND = 3600 * SECOND
_SLOW = 0.25
_SKEW, _WRONG = SECOND, 60 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Facts that are not in the store: how it was chosen, where this process runs, which lease the user plans."""

    store_given: bool = True
    in_container: bool = False
    is_file: bool = False
    store_file: Path | None = None
    """The file with its URL, if that is how it was named."""
    pace: Pace | None = None
    keep: int | None = None
    """For how long records are kept, in microseconds, if not for as long as the nodes say themselves."""


def examine(store: Store, runtime: Runtime, around: Circumstances, *, writes: bool = False) -> list[Check]:
    """Return every line, in the order of a search for the fault. Without `writes` nothing is written."""
    try:
        store.open(read_only=not writes)
        trip = _round_trip(store, runtime)
    except StoreError as error:
        told = str(error)
        return unreachable(told if store.url in told else f"{store.url}: {told}", around)
    found = [_store(store, trip), *_default_store(around)]
    try:
        # The clock check of a store is less exact than `_clock`.
        found += [check for check in store.checks() if check.name != "clock"]
        found += [_clock(store, runtime), _writing(store, runtime) if writes else _not_tried()]
        found += _fleet_and_work(store, around, trip)
    except StoreError as error:
        found.append(fail("store", f"it stopped responding: {error}", "look at the store's own log, then look again"))
    return found


def empty(store: Store, why: str, around: Circumstances) -> list[Check]:
    """Return the lines for an empty store: how it is set up, before the first node starts."""
    found = [fail("store", why, "solocron run TARGET, or correct --store and --namespace"), *_default_store(around)]
    try:
        return found + [check for check in store.checks() if check.name != "clock"]
    except StoreError:
        return found


def unreachable(why: str, around: Circumstances) -> list[Check]:
    """Return the lines for a store that cannot be opened."""
    found = [fail("store", why, "correct --store or SOLOCRON_STORE, or start the store"), *_default_store(around)]
    return found if around.pace is None else [*found, fleet.given_lease(around.pace, 0.0)]


def failed(checks: list[Check]) -> bool:
    """Return whether a line is FAIL."""
    return any(check.level == FAIL for check in checks)


def _fleet_and_work(store: Store, around: Circumstances, trip: float) -> Iterator[Check]:
    sight = look(store)
    yield from fleet.namespace(sight, store.identity())
    yield from fleet.pauses(sight)
    yield from fleet.nodes(sight)
    yield from fleet.silent_nodes(sight)
    yield from fleet.leases(sight)
    if around.pace is not None:
        yield fleet.given_lease(around.pace, trip)
    yield from fleet.versions(sight, __version__)
    yield from fleet.zone_data(sight, zone_data_version())
    yield from carriers(sight)
    yield from work.unreadable(sight)
    yield from work.applications(sight)
    yield from work.revisions(sight)
    yield from work.orphaned(sight)
    yield from work.overdue(sight)
    yield from work.requests(sight)
    yield from work.blocked(sight)
    yield from work.stuck_holds(sight)
    yield from alarms(sight)
    keep = fleet.keep(sight) if around.keep is None else around.keep
    if keep is not None:
        yield _history(store, sight.now, keep)


# --- the store -------------------------------------------------------------------------------------------------------


def _round_trip(store: Store, runtime: Runtime) -> float:
    """Return the seconds of the fastest of a few reads."""
    trips = []
    for _ in range(_ROUNDS):
        before = runtime.clock.boot()
        store.read(Named(Kind.SESSION, ("doctor",)))
        trips.append(runtime.clock.boot() - before)
    return min(trips)


def _store(store: Store, trip: float) -> Check:
    can = store.capabilities
    told = f"{store.url}, namespace {store.namespace}, tier {can.tier}: {can.why}; round trip {trip * 1000:.3g} ms"
    told += ", can notify" if can.notifies else ", cannot notify: changes are seen with the next look"
    if can.tier is Tier.C:
        return warn("store", told, "use a store of tier A or B where a run must not happen twice")
    if trip > _SLOW:
        return warn("store", f"{told}, which is slow", "bring store and nodes closer together, or raise the lease")
    return ok("store", told)


def _default_store(around: Circumstances) -> Iterator[Check]:
    remedy = "set SOLOCRON_STORE to a store that all replicas share"
    if around.store_file is not None and not around.in_container and _is_read_by_all(around.store_file):
        told = f"every user of this machine may read {around.store_file}, and the password in it"
        yield warn("store file", told, f"chmod 640 {around.store_file}")
    if not around.store_given:
        if around.in_container:
            told = "none was given, and in a container every replica has a file of its own and runs everything"
            yield fail("default store", told, remedy)
        else:
            told = "none was given: only processes in this folder of this machine share ./solocron.db"
            yield warn("default store", told, remedy)
    elif around.is_file and around.in_container:
        told = "a file in a container: replicas share it only where they mount the same volume of the same machine"
        yield warn("default store", told, "use a server store such as postgresql://")


def _is_read_by_all(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & stat.S_IROTH)
    except OSError:  # it was there when the URL was read
        return False


def _clock(store: Store, runtime: Runtime) -> Check:
    """Compare the store's clock with this machine's, at the middle of the fastest of a few round trips."""
    measured = []
    for _ in range(_ROUNDS):
        before = runtime.clock.wall()
        there = store.clock()
        after = runtime.clock.wall()
        measured.append((abs(after - before), (before + after) // 2 - there))
    skew, doubt = min(measured)[1], store.capabilities.clock_within
    skew = max(skew - doubt, 0) if skew > 0 else skew  # the store tells a time that is behind its clock by so much
    told = f"this machine's clock is {abs(skew) / SECOND:.3f} s {'ahead of' if skew > 0 else 'behind'} the store's"
    remedy = "set the clock that is wrong; keep both by NTP"
    if abs(skew) >= _WRONG:
        return fail("clock skew", f"{told}; the store's decides, and slots start by it", remedy)
    if abs(skew) > _SKEW:
        return warn("clock skew", f"{told}; the store's decides", remedy)
    return ok("clock skew", told)


def _history(store: Store, now: int, keep: int) -> Check:
    """Look for records that nodes should have removed; up to a tenth of the time late is normal."""
    age = keep + max(keep // 10, _BEHIND)
    kept = f"records are kept for {format_duration(timedelta(microseconds=keep))}"
    if not _older(store, now - age):
        return ok("history", kept)
    while _older(store, now - 2 * age):
        age *= 2
    told = f"{kept}, and there are some that are older than {format_duration(timedelta(microseconds=age))}"
    return warn("history", told, "see the nodes' logs for errors of the sweeper")


def _older(store: Store, than: int) -> bool:
    return than > 0 and bool(store.history(Query(until=than, limit=1)).records)


def _writing(store: Store, runtime: Runtime) -> Check:
    """Write a test document and remove it: tests rights, disk space and commit at once."""
    name = f"doctor:{runtime.rng.token()}"
    which = Named(Kind.KEY, (name,))
    before = runtime.clock.boot()
    try:
        written = store.update(which, partial(_write, name=name)).results[0]
        took = runtime.clock.boot() - before
        removed = store.update(which, _remove).results[0]
    except StoreError as error:
        return fail("writing", str(error), "give this user the right to write, or free the disk")
    for result in (written, removed):
        if result.verdict is not Verdict.APPLIED:
            told = f"a test document could not be changed: {result.verdict} {result.error or ''}".rstrip()
            return fail("writing", told, "look at the store's own log")
    return ok("writing", f"allowed; a commit takes {took * 1000:.3g} ms")


def _not_tried() -> Check:
    return ok("writing", "not tried: only --repair writes")


def _write(doc: SmallDocument | Absent, now: int, *, name: str) -> Change:
    return Change(SmallDocument(kind=Kind.KEY, name=name, body={"by": "doctor"}))


def _remove(doc: SmallDocument | Absent, now: int) -> Change:
    return Change(None)
