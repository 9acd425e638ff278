"""Notices that the store went back, and takes part in the check that follows (`model/documents/namespace.py`).

Everything here runs on the thread that renews the session: a node that can renew can check. The rules, and what each of
them prevents, are in docs/explanation/going-back.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from solocron.clock import SECOND
from solocron.engine.attempts import Board
from solocron.engine.memory import Memory
from solocron.engine.settings import Settings
from solocron.errors import StoreUnavailable
from solocron.events import Events
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import namespace as model
from solocron.model.documents.job import Job
from solocron.model.documents.namespace import NAME, Namespace, Openness
from solocron.model.documents.session import Life, Session, renew
from solocron.model.timetable import Resolve
from solocron.model.transitions.rejoin import Remembered, rejoin, write_off
from solocron.model.transitions.rejoin_effects import rejoin_effect
from solocron.runtime import Runtime
from solocron.stores.contract import All, ChangeFn, Gate, Named, Result, Store, Verdict

__all__ = ["Recovery", "change_namespace"]

PORTION = 200
"""Jobs that are put right in one update: the session is renewed in between."""
FORMER = 8
"""Earlier sessions of this process whose documents are looked at before it begins a new one."""
EPOCHS = 64
"""Epochs of which a node remembers when it saw them."""
_TRIES = 20


PutBackPermits = Callable[[str, Callable[[Sequence[str], ChangeFn], None]], None]


class _Overtaken(Exception):
    """Another check has begun, or this session is not the one that the store knows: look again."""


class _Former:
    """A session that this process has had, and which renewals of it the store acknowledged lately."""

    def __init__(self, began: float, lease: float) -> None:
        self._lease = lease
        self._acknowledged: deque[tuple[int, float]] = deque([(0, began)])
        """Each by its number, with the boot time before it was sent."""

    @property
    def beats(self) -> int:
        return self._acknowledged[-1][0]

    @property
    def renewed(self) -> float:
        return self._acknowledged[-1][1]

    def acknowledge(self, beats: int, asked: float) -> None:
        self._acknowledged.append((beats, asked))
        while len(self._acknowledged) > 2 and self._acknowledged[1][1] < asked - 3 * self._lease:
            self._acknowledged.popleft()

    def lost(self, beats: int | None) -> float:
        """Seconds between the last renewal that is left (None: not even its beginning is) and the last one."""
        left = [asked for number, asked in self._acknowledged if number <= (-1 if beats is None else beats)]
        return self.renewed - (left[-1] if left else self._acknowledged[0][1])


class Recovery:
    """What one node knows of its namespace."""

    def __init__(
        self,
        *,
        store: Store,
        board: Board,
        runtime: Runtime,
        settings: Settings,
        events: Events,
        memory: Memory,
        resolve: Resolve,
        changed: Callable[[], None],
        checked: Callable[[], None],
        put_back_permits: PutBackPermits = lambda session, update_all: None,
    ) -> None:
        self._store = store
        self._board = board
        self._runtime = runtime
        self._settings = settings
        self._events = events
        self._memory = memory
        self._resolve = resolve
        self._changed = changed
        self._tell_checked = checked
        self._put_back_permits = put_back_permits
        self._known: Namespace | None = None
        """The namespace as this node last read it."""
        self._checked = ""
        """The epoch that this node has checked and marked its session with."""
        self._attend = True
        """Whether the namespace has to be read again before anything else."""
        self._back: float | None = None
        """Seconds that were lost at least, if the node's own session shows that the store went back."""
        self._former: dict[str, _Former] = {}
        self._epochs: dict[int, float] = {}
        """Boot times at which this node first saw each epoch, by its count."""
        self._heard = 0.0
        """Boot time at which the store last told anything of the namespace."""
        self._has_begun = False
        """Whether this process has had a session."""
        self._told = False
        """Whether what this node lost was taken into account, so that its session may be lifted."""
        self._from = 0.0
        """Boot time from which on this node may claim: those who remember notice a restore first."""
        self._awaited: dict[str, int] = {}
        """The sessions that have to be renewed, or to end, before it may claim sooner."""

    # --- what the loops ask ------------------------------------------------------------------------------------------

    @property
    def checked(self) -> bool:
        """Whether what the store says of this node's claims can be believed."""
        return not self._attend and self._known is not None and self._known.epoch == self._checked

    @property
    def is_open(self) -> bool:
        """Whether runs may be claimed and taken over."""
        known = self._known
        return self.checked and known is not None and known.openness is Openness.OPEN

    def may_claim(self) -> bool:
        return self.is_open and self._runtime.clock.boot() >= self._from

    def claims_from(self) -> float | None:
        """Boot time at which a newcomer may claim, if that alone keeps it from doing so."""
        return self._from if self.is_open and self._runtime.clock.boot() < self._from else None

    @property
    def epoch(self) -> str:
        return self._checked

    def gate(self, *openness: Openness) -> Gate:
        """What the commit of a write tests; by default that claims are granted."""
        words = tuple(f"{one} {self._checked}" for one in openness or (Openness.OPEN,))
        return Gate(self._board.beats, words)

    def gate_of(self, session: str) -> Gate:
        """The same for what is written under a session that this process has lost."""
        former = self._former.get(session)
        return Gate(0 if former is None else former.beats, (f"{Openness.OPEN} {self._checked}",))

    def wrote(self, kind: Kind, name: str, doc: object) -> None:
        """The store acknowledged a lock, a key or the steps of a run: they are put back if it goes back.

        A process that waits for a lock writes its ticket into the document of the holder, which the holder puts back.
        """
        if not isinstance(doc, SmallDocument):
            self._memory.removed(kind, name)
        elif doc.session in (None, self._board.session, *self._former):
            self._memory.wrote(doc)

    def shut(self) -> None:
        """A write was refused at the gate: the namespace has to be looked at."""
        self._attend = True

    def may_bury(self, session: Session, now: int) -> bool:
        """Whether a session that is expired by both clocks may be buried.

        During a check everybody may be expired, because the store was away: nobody is buried before a lease has passed.
        Burying a node that has not taken part leaves claims that nobody remembers, which is written down first.
        """
        known = self._known
        if not self.checked or known is None or known.openness is Openness.CLOSED:
            return False
        if known.openness is Openness.OPEN:
            return True
        if now < known.since + max(session.lease, self._settings.lease_us):
            return False
        if session.epoch == known.epoch:
            return True
        doubted = self._change(lambda doc, at: model.note_doubt(doc, epoch=known.epoch))
        return doubted is not None

    # --- signs ---------------------------------------------------------------------------------------------------

    def saw(self, gate: tuple[str, str] | None) -> None:
        """What a renewal was told of the namespace and the server; None if it was told nothing."""
        known = self._known
        if gate is None or known is None or gate != (known.gate, known.identity) or not self.checked:
            self._attend = True

    def renewed(self, session: Session, asked: float) -> None:
        """The store acknowledged a renewal; a session that does not bear the mark any more has to be marked again."""
        former = self._former.get(session.name)
        if former is not None:
            former.acknowledge(session.beats, asked)
        if session.epoch != self._checked:
            self._checked = ""
        self._heard = asked
        if self.is_open:
            self._memory.grow_older(asked, keep=2 * self._settings.lease + 2 * self._settings.beat)
        else:
            self._memory.stand_still()

    def went_back(self, doc: object, session: str) -> bool:
        """Whether the document of a session of ours is older than what the store has acknowledged."""
        former = self._former.get(session)
        if former is None:
            return False
        now = self._runtime.clock.boot()
        if not isinstance(doc, Session):
            # Sessions that were swept are removed once they are older than history is kept.
            if now - former.renewed > self._settings.keep / SECOND / 2:
                del self._former[session]
                return False
            lost = former.lost(None)
        elif doc.beats < former.beats:
            lost = former.lost(doc.beats)
        else:
            return False
        self._back = max(lost, self._back or 0.0)
        self._attend = True
        return True

    def look_back(self) -> None:
        """Before a new session: whether the documents of the earlier ones are as they were left."""
        names = tuple(name for name in self._former if name != self._board.session)
        if names:
            found = {doc.name: doc for doc in self._store.read(Named(Kind.SESSION, names))}
            for name in names:
                self.went_back(found.get(name), name)

    # --- the check -----------------------------------------------------------------------------------------------

    def join(self) -> Namespace:
        """Read the namespace before a session begins; make it if there is none, begin a check if there is a sign."""
        known = self._look()
        if not self._checked and not self._memory.recall(known.epoch):
            self._checked = known.epoch  # this process has just begun and remembers nothing that could be missing
            self._known = known
        return known

    def begun(self, session: str, asked: float) -> None:
        """A session has begun. The first one of a process claims nothing for a while if others seem to live.

        They notice first that the store went back, each with its next renewal; this process remembers nothing.
        """
        first, self._has_begun = not self._has_begun, True
        self._former[session] = _Former(asked, self._settings.lease)
        while len(self._former) > FORMER:
            del self._former[next(iter(self._former))]
        if first:
            self._awaited = {name: beats for name, beats in self._others().items() if name != session}
        if first and self._awaited:
            self._from = self._runtime.clock.boot() + self._settings.barrier
            self._events.emit("newcomer", node=self._settings.node, claims_in_s=self._settings.barrier)

    def _others(self) -> dict[str, int]:
        """The sessions of nodes that seem to live, and how often each was renewed."""
        found = [doc for doc in self._store.read(All(Kind.SESSION)) if isinstance(doc, Session)]
        return {doc.name: doc.beats for doc in found if doc.pools and doc.state is Life.LIVE}

    def look_at_others(self) -> None:
        """End the wait of a newcomer as soon as each of those that seemed to live was renewed, or has ended.

        A node that renews its session has seen whether the store went back, and would have shut the namespace.
        """
        if not self._awaited:
            return
        if self._runtime.clock.boot() < self._from:
            found = self._others()
            self._awaited = {name: beats for name, beats in self._awaited.items() if found.get(name) == beats}
            if self._awaited:
                return
        self._awaited, self._from = {}, 0.0
        self._changed()

    def claim_at_once(self) -> None:
        """This process makes one pass for an external trigger, and does not wait for those who remember."""
        self._awaited, self._from = {}, 0.0

    def next_look(self, planned: float) -> float:
        """When to look at the namespace again, at the latest when planned: soon, while it is being checked."""
        known = self._known
        now = self._runtime.clock.boot()
        if self._awaited:
            return min(planned, now + min(self._settings.beat / 4, 1.0))
        if known is None or known.openness is not Openness.CHECKING:
            return planned
        over = self._board.boot_of(known.since + round(self._settings.barrier * SECOND))
        return max(now, over) if over is not None and over > now else now + self._settings.beat / 8

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do here until the next renewal."""
        known = self._known
        return self.checked and known is not None and known.openness is not Openness.CHECKING

    def attend(self, session: str, between: Callable[[], None]) -> bool:
        """Do what the state of the namespace asks of this node; True when its claims can be believed."""
        if self.idle:
            return True
        before = self._known
        try:
            known = self._look()
            if known.epoch != self._checked:
                self._check(known, session, between)
            if known.openness is Openness.CHECKING:
                known = self._try_to_open(known, session, between)
        except _Overtaken:
            self._attend = True
            return False
        self._known = known
        self._attend = False
        if before is None or before.gate != known.gate:
            self._changed()
        return True

    def _look(self) -> Namespace:
        """The namespace as it is, after a check was begun if this node has met a sign that the store went back."""
        identity = self._store.identity()
        found = self._read()
        if found is None and (self._known is None and self._back is None):
            token = self._runtime.rng.token()
            found = self._sure(lambda doc, at: model.establish(doc, identity=identity, token=token))
        count = 0 if self._known is None else self._known.count
        left = 0 if found is None else found.count
        if left < count:
            # Of sessions that were lost one after the other none is old: the epochs tell how far back it went.
            since = min(at for epoch, at in self._epochs.items() if epoch > left)
            self._back = max(self._heard - since, self._back or 0.0)
        sign = found is None or found.identity != identity or self._back is not None
        if sign:
            found = self._begin_check(identity, count)
        assert found is not None
        self._tell(found)
        if self._known is None or self._known.count < found.count:
            self._known = found
        self._heard = self._runtime.clock.boot()
        self._epochs.setdefault(found.count, self._heard)
        while len(self._epochs) > EPOCHS:
            del self._epochs[min(self._epochs)]
        return found

    def _begin_check(self, identity: str, count: int) -> Namespace:
        token = self._runtime.rng.token()
        lost = self._back or 0.0
        if lost > 2 * self._settings.lease:
            found = self._sure(lambda doc, at: model.close(doc, identity=identity, known=count, token=token, now=at))
        else:
            found = self._sure(
                lambda doc, at: model.begin_check(
                    doc, identity=identity, known=count, checked=self._checked, token=token, now=at
                )
            )
        self._told = self._back is not None
        self._back = None
        session = self._board.session
        self._former = {name: one for name, one in self._former.items() if name == session}
        return found

    def _tell(self, found: Namespace) -> None:
        known = self._known
        if known is not None and known.gate == found.gate:
            return
        node, epoch, server = self._settings.node, found.epoch, found.identity
        if found.openness is Openness.CHECKING and (known is None or known.epoch != found.epoch):
            self._events.emit("store went back", node=node, epoch=epoch, server=server)
        elif found.openness is Openness.CLOSED:
            self._events.emit("namespace closed", node=node, epoch=epoch, server=server)
        elif known is not None and known.openness is not Openness.OPEN:
            self._events.emit("namespace open", node=node, epoch=epoch, server=server)

    def _check(self, known: Namespace, session: str, between: Callable[[], None]) -> None:
        """Put back what this node remembers and the store has lost, then mark the session with the epoch."""
        epoch = known.epoch
        own = self._store.read(Named(Kind.SESSION, (session,)))
        if not self._told and self.went_back(own[0] if own else None, session):
            raise _Overtaken  # how much was lost decides, also where another node has begun the check
        self._renew(session, lift=True)  # one that came back with an old count is refused everything until it is lifted
        self._told = False
        memories = self._memory.recall(epoch)
        gate = Gate(self._board.beats, (f"{Openness.OPEN} {epoch}", f"{Openness.CHECKING} {epoch}"))
        if known.openness is not Openness.CLOSED:
            names = sorted(memories)
            for start in range(0, len(names), PORTION):
                self._put_back(names[start : start + PORTION], memories, epoch, session, gate)
                between()
            self._put_back_effects(session, gate)
            self._put_back_permits(
                session, lambda names, change: self._update_all(Kind.PERMIT, names, change, session, gate)
            )
        self._renew(session, mark=known)
        self._tell_checked()
        self._checked = epoch

    def _put_back(
        self, names: Sequence[str], memories: Mapping[str, list[Remembered]], epoch: str, session: str, gate: Gate
    ) -> None:
        def change(doc: Job | Absent, now: int) -> Change | None:
            return rejoin(doc, memories[doc.name], epoch=epoch, session=session, now=now, resolve=self._resolve)

        self._update_all(Kind.JOB, names, change, session, gate, self._tell_put_back)

    def _tell_put_back(self, result: Result) -> None:
        if result.verdict is Verdict.APPLIED:
            self._events.emit("put back", job=result.name, node=self._settings.node)
        elif result.verdict is Verdict.BLOCKED:
            self._events.emit("job blocked", job=result.name, error=result.error)

    def _put_back_effects(self, session: str, gate: Gate) -> None:
        """The same for locks, keys and steps."""
        for kind, notes in self._memory.effects().items():
            change = partial(_rejoin_effect, notes=notes, session=session)
            names = sorted(notes)
            for start in range(0, len(names), PORTION):
                self._update_all(kind, names[start : start + PORTION], change, session, gate)

    def _update_all(
        self,
        kind: Kind,
        names: Sequence[str],
        change: ChangeFn,
        session: str,
        gate: Gate,
        tell: Callable[[Result], None] = lambda result: None,
    ) -> None:
        """Apply a change to each of these under the gate, and again where another node was faster."""
        left = tuple(names)
        for _ in range(_TRIES):
            if not left:
                return
            applied = self._store.update(Named(kind, left), change, session=session, gate=gate)
            if applied.shut or not applied.alive:
                raise _Overtaken
            for result in applied.results:
                tell(result)
            again = (Verdict.CONTENDED, Verdict.UNKNOWN)
            left = tuple(result.name for result in applied.results if result.verdict in again)
        if left:
            raise StoreUnavailable(
                f"{len(left)} documents of kind {kind} could not be checked, {left[0]} among them; it is tried again"
            )

    def _renew(self, session: str, *, lift: bool = False, mark: Namespace | None = None) -> None:
        """Renew: lift an old count to what was acknowledged, or mark the session with an epoch that is checked.

        What this node has put back may be lost again before the mark is written. So the commit of a mark tests that the
        session is as new as the node knows it, and that the server and the epoch are the ones that it has checked.
        """
        asked = self._runtime.clock.boot()
        seen, number = self._board.beats, self._board.next_beat()
        running = len(self._board.running())
        epoch = None if mark is None else mark.epoch
        applied = self._store.update(
            Named(Kind.SESSION, (session,)),
            lambda doc, at: renew(doc, now=at, running=running, seen=seen, number=number, epoch=epoch, lift=lift),
            session=None if mark is None else session,
            gate=None if mark is None else gate_of_mark(seen, mark.epoch),
        )
        if applied.shut or not applied.alive:
            raise _Overtaken
        result = applied.results[0]
        if result.verdict is Verdict.DECLINED:
            raise _Overtaken  # it is dead or gone: the next renewal says so, and a new session begins
        if result.verdict is not Verdict.APPLIED or not isinstance(result.doc, Session):
            raise StoreUnavailable(f"the session could not be renewed ({result.verdict}); trying again")
        self._board.saw_store_time(applied.now, asked=asked, replied=self._runtime.clock.boot())
        self._board.count_beats(session, result.doc.beats)
        if not self._board.renewed(session, asked):
            raise _Overtaken
        former = self._former.get(session)
        if former is not None:
            former.acknowledge(result.doc.beats, asked)

    def _try_to_open(self, known: Namespace, session: str, between: Callable[[], None]) -> Namespace:
        """End the check once every live node has taken part and each has had the time to."""
        barrier = round(self._settings.barrier * SECOND)
        now = self._board.store_now()
        if now is None or now < known.since + barrier:
            return known
        sessions = [doc for doc in self._store.read(All(Kind.SESSION)) if isinstance(doc, Session)]
        if not all_marked(sessions, known.epoch):
            return known
        if known.doubt:
            self._write_off(known, session, between)
        # Tested in the commit of the opening: the marks, and what was written off, are on the server that answers.
        opened = change_namespace(
            self._store,
            lambda doc, at: model.open_again(doc, epoch=known.epoch, now=at, barrier=barrier, doubt=known.doubt),
            session=session,
            gate=self.gate(Openness.CHECKING, Openness.OPEN),
        )
        if opened is None:
            raise _Overtaken
        self._tell(opened)
        return opened

    def _write_off(self, known: Namespace, session: str, between: Callable[[], None]) -> None:
        """Whatever a node that died during the check may have started is not started again."""

        def change(doc: Job | Absent, now: int) -> Change | None:
            return write_off(doc, until=known.since, late_for=self._settings.late_for, now=now, resolve=self._resolve)

        after = ""
        while True:
            page = self._store.read(All(Kind.JOB, after=after, limit=PORTION))
            due = [doc.name for doc in page if isinstance(doc, Job) and doc.due_at and doc.due_at <= known.since]
            self._update_all(Kind.JOB, due, change, session, self.gate(Openness.CHECKING))
            if len(page) < PORTION:
                return
            after = page[-1].name
            between()

    # --- the document ------------------------------------------------------------------------------------------------

    def _read(self) -> Namespace | None:
        found = self._store.read(Named(Kind.NAMESPACE, (NAME,)))
        return model.read(found[0]) if found else None

    def _change(self, change: ChangeFn) -> Namespace | None:
        return change_namespace(self._store, change)

    def _sure(self, change: ChangeFn) -> Namespace:
        found = self._change(change)
        assert found is not None
        return found


def _rejoin_effect(
    doc: SmallDocument | Absent, now: int, *, notes: Mapping[str, SmallDocument], session: str
) -> Change | None:
    return rejoin_effect(doc, notes[doc.name], session=session, now=now)


def all_marked(sessions: Iterable[Session], epoch: str) -> bool:
    """Whether every live node has checked this epoch. A process without pools runs no jobs and checks nothing."""
    return all(s.epoch == epoch for s in sessions if s.state is Life.LIVE and s.pools)


def gate_of_mark(beats: int, epoch: str) -> Gate:
    """What the commit of a mark tests; a node that has checked a closed namespace says so as well."""
    return Gate(beats, tuple(f"{one} {epoch}" for one in Openness))


def change_namespace(
    store: Store, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
) -> Namespace | None:
    """Change the namespace's document, again where another node was faster; None where change or gate declines."""
    for _ in range(_TRIES):
        applied = store.update(Named(Kind.NAMESPACE, (NAME,)), change, session=session, gate=gate)
        if applied.shut or not applied.alive:
            return None
        result = applied.results[0]
        if result.verdict is Verdict.APPLIED:
            assert isinstance(result.answer, Namespace)
            return result.answer
        if result.verdict is Verdict.DECLINED:
            return None
    raise StoreUnavailable("the namespace's document could not be changed; it is worth trying again")
