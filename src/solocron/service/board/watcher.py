"""`Watcher`: looks at the store for all who look at the service, and numbers what has changed.

One pass serves every open page. It is bounded: the holds, at most 200 records, the slots of jobs in which something
happened; by turns the last acts, how many jobs there are, and the nodes; at every sixth pass the alarms, which jobs are
kept back, and the slots of three more jobs. A pass that takes long makes the next one later. Nothing here runs by
itself: an adapter calls `look` for as long as it has readers, so that a service that no client looks at asks nothing.
"""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from threading import Lock

from solocron.client import Client
from solocron.client.hour_counts import HOUR
from solocron.clock import SECOND, to_us
from solocron.errors import EmptyStore, SolocronError
from solocron.model.change import Kind
from solocron.model.documents import audit
from solocron.model.documents.alarm import is_open
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record, Status, job_of
from solocron.model.documents.session import is_live
from solocron.service.board.accounting import HOURS, AccountingBoard
from solocron.service.board.changes import Changes, SeenRun
from solocron.service.moments import moment
from solocron.stores.contract import All, Mark, Query, Store
from solocron.stores.paging import iter_documents, read_documents, read_held, read_jobs, sessions_since
from solocron.views import JobView

__all__ = ["QUIET", "Watcher"]

log = logging.getLogger("solocron.service")

QUIET = 60.0
"""Seconds without a look after which what was kept is not continued."""
_EVERY = 2.0
_EVERY_WHEN_SLOW = 10.0
_SLOW = 0.1
_FIRST_PASS = 5.0
_RECORDS = 200
_ACTS = 20
_MARKED = 1_000
_READ = 100
"""Jobs that are kept back whose documents are read, to see one pause follow another; of more, only the names."""
_OVERLAP = 5 * SECOND
"""Microseconds that each pass looks back behind the last: commits become visible out of order."""
_REMEMBERED = 5_000
_ROUND = 6
"""Passes after which every part was read: the acts, the numbers of jobs and the nodes in two of them."""
_WELL = frozenset([Status.SUCCEEDED, Status.HANDED_OVER])
_Kept = tuple[int | None, bool]
"""How a job is kept back: since when it is paused, if it is, and whether it is enabled."""
_FREE: _Kept = (None, True)
_MANY: _Kept = (0, False)
"""Of one among too many: it is kept back."""


class Watcher:
    """The state of a namespace as of the last pass. `look` may be called by any thread; two do not look at once."""

    def __init__(self, client: Callable[[], Client], *, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._lock = Lock()
        self._passes = 0
        self._looked_at: float | None = None
        self._next = 0.0
        self._hastened = False
        self._time: tuple[int, float] | None = None
        self._mark = 0
        self._ended: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._running: dict[tuple[str, int], SeenRun] = {}
        self._parts: dict[str, Mapping[str, Hashable]] = {}
        self._shown: dict[str, _Kept] = {}
        self._shown_lock = Lock()
        self._codes: frozenset[tuple[str, int | None, str]] = frozenset()
        self._deployed = False
        self.changes = Changes(lambda: secrets.token_hex(4))
        self.accounting = AccountingBoard(client, clock=clock)
        self.answers = True
        """False since the store did not answer a pass."""

    @property
    def _store(self) -> Store:
        return self._client().store

    @property
    def now(self) -> int | None:
        """The store's time by its last answer and this machine's boot time; None before the first pass."""
        if self._time is None:
            return None
        store, boot = self._time
        return store + int((self._clock() - boot) * SECOND)

    def look(self, *, at_once: bool = False) -> float:
        """Do a pass if it is due, and return the seconds until the next one."""
        # What is known is good enough for a caller that comes while another looks; only the first pass is waited for.
        if not self._lock.acquire(timeout=_FIRST_PASS if self._time is None else 0):
            return _EVERY
        try:
            return self._look(at_once=at_once)
        finally:
            self._lock.release()

    def _look(self, *, at_once: bool) -> float:
        begun = self._clock()
        if not at_once and begun < self._next:
            return self._next - begun
        fresh = self._looked_at is None or begun - self._looked_at > QUIET
        if fresh:
            self._begin()
        try:
            with moment():  # its own: a request that lets it look goes on in that of its page
                self._pass(told=not fresh)
            self._answered(True)
        except EmptyStore:  # the page says so; not a fault, and may last
            self._answered(False)
        except SolocronError as error:
            log.warning("the store does not answer the service: %s", type(error).__name__)
            self._answered(False)
        except Exception:
            log.exception("a pass over the store failed")
            self._answered(False)
        self._looked_at = ended = self._clock()
        pause = _EVERY_WHEN_SLOW if ended - begun > _SLOW else _EVERY
        self._next = ended + pause
        return pause

    def note_shown(self, jobs: Iterable[JobView]) -> None:
        """Look at the next pass whether these jobs are still kept back as readers are shown now.

        A pause that comes and goes between two passes leaves nothing that a pass could find. A page that was made in
        between shows it, and would for long: so what is shown and was not known is compared with what is found next.
        """
        known = self._parts.get("marks", {})
        found = {job.name: _shown(job) for job in jobs}
        with self._shown_lock:
            self._shown.update({name: one for name, one in found.items() if _differ(known.get(name, _FREE), one)})
            while len(self._shown) > _MARKED:
                del self._shown[next(iter(self._shown))]

    def hasten(self) -> None:
        """Let the next pass be due: this process has changed something."""
        self._hastened = True
        self._next = 0.0

    def _begin(self) -> None:
        self.changes.restart()
        self._passes = self._mark = 0
        self._ended.clear()

    def _answered(self, answers: bool) -> None:
        if answers is not self.answers:
            self.answers = answers
            self.changes.add((), everything=True)

    def _pass(self, *, told: bool) -> None:
        self._store.open(read_only=True)  # a store that is not there yet is not made by looking
        turn, first = self._passes % _ROUND, not self._passes
        if not self._passes % (2 * _ROUND):
            asked = self._clock()
            self._time = (self._store.clock(), asked)
        topics, runs, more = self._runs()
        of_runs, usual = (set(topics), more), all(map(_is_usual, runs))
        if self._hastened or turn % 3 == 0:
            self._hastened = False
            topics |= self._acts()
        if first or turn % 3 == 1:
            found, moved = self._jobs(marks=turn == 4)
            topics, more = topics | found, more or moved
        elif self._shown:
            topics |= self._kept_back()
        if first or turn % 3 == 2:
            found, deployed = self._nodes()
            topics, more = topics | found, more or deployed
        if not turn:
            topics |= self._alarms()
        topics |= self._account(topics, go_on=not turn)
        self._client().read_ahead()
        self._passes += 1
        if told and (topics or more):
            urgent = not usual or (topics, more) != of_runs
            self.changes.add(topics, runs, everything=more, urgent=urgent)

    def _runs(self) -> tuple[set[str], list[SeenRun], bool]:
        """Return what began and what ended. The holds are read before the log: what ends in between is in the log."""
        held = {
            (hold.run, hold.attempt): SeenRun(hold.run, job.name, "running", hold.node, hold.attempt)
            for job in read_held(self._store)
            for hold in job.active
        }
        first = self._mark or self.now or 0
        page = self._store.history(Query(since=first - _OVERLAP, limit=_RECORDS))
        ended = [_seen(one) for one in reversed(page.records) if self._is_new(one)]
        over = {(one.run, one.attempt) for one in ended}
        begun = [one for key, one in held.items() if key not in self._running and key not in over]
        gone = [one for key, one in self._running.items() if key not in held and key not in over]
        self._running = held
        self._mark = max((one.recorded_at for one in page.records), default=first)
        changed = [*begun, *ended]
        topics = {f"job:{one.job}" for one in (*changed, *gone)}
        # If none of a full page was known, older ones may be new as well: which, this pass does not tell.
        more = page.next is not None and len(ended) == len(page.records)
        return (topics | {"runs"} if topics else topics), changed, more

    def _is_new(self, record: Record) -> bool:
        key = record.run, record.attempt
        if key in self._ended:
            return False
        self._ended[key] = None
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        return True

    def _acts(self) -> set[str]:
        """Return the topics of acts that are new on record: a pause by another process shows at once."""
        entries = map(audit.read, read_documents(self._store, All(Kind.AUDIT, limit=_ACTS)))
        subjects = {entry.name: (entry.act.subject, entry.result) for entry in entries}
        changed = self._changed("acts", subjects)
        topics = {f"job:{job_of(subjects[name][0]) or subjects[name][0]}" for name in changed if name in subjects}
        return topics | {"audit", "jobs"} if topics else set()

    def _nodes(self) -> tuple[set[str], bool]:
        """Return the topics of nodes that came or went and of refused results, and whether other code runs now.

        A definition that a deploy changes leaves no other mark, but it comes with a node. The next look says so once
        more: a node may be seen before it has declared its jobs.
        """
        now = self.now or 0
        found = sessions_since(self._store, now - HOURS * HOUR)
        self.accounting.note_refused(found, now)
        sessions = {one.name: (one.state, is_live(one, now=now)) for one in found}
        refused = {f"{end.run} {end.fence}": end.run for one in found for end in one.report.refused}
        topics = {f"job:{job_of(refused[key])}" for key in self._changed("refused", refused) if key in refused}
        latest = max(found, key=lambda one: one.started_at, default=None)
        codes = frozenset(
            (one.fingerprint, one.revision, one.version) for one in found if one is latest or is_live(one, now=now)
        )
        again, self._deployed = self._deployed, bool(self._passes and codes - self._codes)
        self._codes = codes
        topics |= {"nodes", "runs"} if topics else set()
        return topics | ({"nodes"} if self._changed("nodes", sessions) else set()), again or self._deployed

    def _alarms(self) -> set[str]:
        alarms = {doc.name: doc.body.get("opened") for doc in iter_documents(self._store, Kind.ALARM) if is_open(doc)}
        return {"alarms"} if self._changed("alarms", alarms) else set()

    def _jobs(self, *, marks: bool) -> tuple[set[str], bool]:
        """Return the topics of jobs that were paused, resumed, disabled or enabled without an act on record.

        And whether jobs came or went, which may concern any page. Their numbers tell both; with `marks` the names are
        read although the numbers are as they were: one may be paused where another was resumed.
        """
        counted = self._store.count_jobs()
        came = self._changed("jobs", {"": (counted.all, counted.marked[Mark.REMOVED])})
        if came and self._passes:
            self.accounting.list_anew()
            self._client().forget_jobs()
        kept = {"": (counted.marked[Mark.PAUSED], counted.marked[Mark.DISABLED])}
        look = self._changed("kept back", kept) or self._shown or (marks and any(kept[""]))
        return (self._kept_back() if look else set()), bool(came and self._passes)

    def _kept_back(self) -> set[str]:
        """Return the topics of jobs that are not kept back as they were, or as readers were shown."""
        with self._shown_lock:
            shown, self._shown = self._shown, {}
        names = self._store.marked(Mark.PAUSED | Mark.DISABLED, limit=_MARKED)
        known = self._parts.get("marks", {})
        marked: dict[str, Hashable] = {name: known.get(name, _MANY) for name in names}
        if len(names) <= _READ and (shown.keys() & marked.keys() or _MANY in marked.values()):
            marked |= {job.name: _kept(job) for job in read_jobs(self._store, names)}
        jobs = self._changed("marks", marked)
        jobs |= {name for name, one in shown.items() if _differ(marked.get(name, _FREE), one)}
        return {"jobs", *(f"job:{name}" for name in jobs)} if jobs else set()

    def _account(self, topics: set[str], *, go_on: bool) -> set[str]:
        """Compare some jobs, those in which something happened first; with `go_on` also some of the others."""
        now = self.now or 0
        self.accounting.concern(topic[4:] for topic in topics if topic.startswith("job:"))
        self.accounting.step(now, go_on=go_on)
        found = {"accounting"} if self._changed("accounting", {"": self.accounting.verdict}) else set[str]()
        return found | ({"jobs"} if self._changed("listed", {"": self.accounting.listed}) else set())

    def _changed(self, part: str, found: Mapping[str, Hashable]) -> set[str]:
        """Keep what was found, and return the names that came, went or changed."""
        known = self._parts.get(part, {})
        self._parts[part] = found
        return {name for name, _ in _differences(known.items(), found.items())}


def _differences(
    known: Iterable[tuple[str, Hashable]], found: Iterable[tuple[str, Hashable]]
) -> frozenset[tuple[str, Hashable]]:
    return frozenset(known) ^ frozenset(found)


def _kept(job: Job) -> _Kept:
    return None if job.paused is None else job.paused.at, job.definition.enabled


def _differ(known: Hashable, shown: _Kept) -> bool:
    return known != shown and not (known == _MANY and shown != _FREE)


def _shown(job: JobView) -> _Kept:
    return None if job.paused is None else to_us(job.paused.at), job.enabled


def _is_usual(run: SeenRun) -> bool:
    """Return whether a run goes as it should: readers need not know of it at once."""
    return run.status in _WELL or (run.status == "running" and run.attempt == 1)


def _seen(record: Record) -> SeenRun:
    return SeenRun(record.run, record.job, str(record.status), record.node, record.attempt)
