"""Explores *every* state that a small fleet can reach, faults included, and proves two things of each.

Safety: no step breaks a rule (one live claim, attempts in order, fences that grow, no stale write, a cursor that passes
nothing, no second body beside one that still runs). Liveness: once the faults stop, every slot can still be decided,
whatever happened before: no hold is left that nobody will ever end.

The store's steps are the machine's own functions, each one atomic; around them are nodes reduced to the rules of the
lease protocol. A request may be lost, answered into the void, or applied at any time later, also after its sender died.
Times count from now and fences by rank, so that the states are finite in number although the clock never stops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import Any, NamedTuple

from solocron.clock import SECOND
from solocron.model import ending, session
from solocron.model.change import Absent, Change, Kind
from solocron.model.claiming import Claimant, claim, settle
from solocron.model.definition import Definition
from solocron.model.job import Hold, Job
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.model.run import Entry, Op, Status
from solocron.model.session import Life, Session
from solocron.model.timetable import Timetable
from solocron.schedules import Every

__all__ = ["Faults", "Report", "Rules", "Small", "explore"]

TICK = SECOND
"""A beat: nodes renew once each tick."""
LEASE = 3 * TICK
LATE_FOR = LEASE + 2 * TICK
OLD = LATE_FOR // TICK
"""Ticks after which nothing gets any older."""


@dataclass(frozen=True)
class Rules:
    """The rules of the lease protocol that may be left out, to see what they are for."""

    claim_needs_live_session: bool = True
    """Rule 1: a claim commits only if its session is live in the same step."""
    dead_until_swept: bool = True
    """Rule 2: whoever finds a dead session that is not swept goes on with the sweep."""
    reconcile: bool = True
    """Rule 3: every beat a node adopts what its session holds and it does not know."""


class Faults(NamedTuple):
    """How many of each may still happen, and how many at all."""

    freezes: int = 1
    kills: int = 1
    lost_replies: int = 1
    late: int = 1
    together: int = 4


@dataclass(frozen=True)
class Small:
    """A world to explore."""

    nodes: int = 2
    slots: int = 2
    retries: int = 1
    overlap: str = "queue"
    faults: Faults = field(default_factory=Faults)
    rules: Rules = field(default_factory=Rules)
    prompt: bool = True
    """Whether nodes do what they have to within a beat, if no fault keeps them (bodies may always take their time)."""
    swap: bool = False
    """Whether a sent change of a job is computed when sent and committed if nobody else wrote (compare-and-swap), or
    computed when it arrives (a script in the store)."""


@dataclass
class Report:
    """What was found: how many states and steps, and the shortest way to the first thing that is wrong, if any is."""

    states: int = 0
    steps: int = 0
    wrong: str | None = None
    trace: list[str] = field(default_factory=list)


class Node(NamedTuple):
    """What a node knows."""

    mode: str = "up"
    session: str | None = None
    trusted_until: int = 0
    bodies: tuple[tuple[str, int, int], ...] = ()
    """Runs whose bodies it has: run, fence, slot."""
    swept: str | None = None
    """A dead session over whose holds it has made a complete pass."""
    wary: bool = False
    """Whether it does not know what became of its last claim: the next one waits for a beat."""
    begun: int = 0
    """How many sessions it has had; their names are never reused."""


class Request(NamedTuple):
    """Something sent to the store by a node."""

    op: str
    node: int
    session: str
    run: str = ""
    fence: int = 0
    seen: int = 0
    """The beats of the session that it would bury."""
    sent_at: int = 0


class State(NamedTuple):
    """The whole world at one moment."""

    now: int
    job: Job
    sessions: tuple[Session, ...]
    nodes: tuple[Node, ...]
    floating: tuple[Request, ...]
    """Sent, and not yet applied: they may be at any time, or never."""
    log: tuple[tuple[Status, ...], ...]
    """Per slot the statuses of its attempts, or the one of a slot that did not run."""
    left: Faults


class Wrong(Exception):
    """A step broke a rule."""


Step = tuple[str, bool, State]
"""What happened, whether it may happen without a fault, and what came of it."""


def explore(small: Small, *, limit: int | None = None) -> Report:
    """Breadth first through all reachable states (or the first `limit`); the report has the shortest counterexample."""
    return _Explorer(small).run(limit)


class _Explorer:
    def __init__(self, small: Small) -> None:
        self.small = small
        self.slots = tuple(TICK * (n + 1) for n in range(small.slots))
        end = self.slots[-1]

        class Slots(Every):
            """The first few ticks, and nothing after them."""

            def after_us(self, us: int) -> int | None:
                found = super().after_us(max(us, 0))
                return found if found is not None and found <= end else None

            def before_us(self, us: int) -> int | None:
                found = super().before_us(min(us, end + 1))
                return found if found is not None and found > 0 else None

            def count_us(self, a: int, b: int) -> int:
                return super().count_us(max(a, 0), min(b, end))

        self._changes: dict[Any, tuple[Job, Change | None]] = {}
        """What the machine made of a document; the document is kept with it, so that its id stays its own."""
        self._timetable = Timetable(Slots(TICK / SECOND))

    def resolve(self, spec: Mapping[str, Any] | None) -> Timetable:
        return self._timetable

    def run(self, limit: int | None) -> Report:
        report, start = Report(), self._start()
        first = self._key(start)
        came_from: dict[Any, tuple[Any, str]] = {first: (None, "")}
        progress_to: dict[Any, list[Any]] = {}
        done: list[Any] = []
        queue = deque([(first, start)])
        while queue and (limit is None or report.states < limit):
            here, state = queue.popleft()
            report.states += 1
            if self._done(state):
                done.append(here)  # for good: nothing that is still on its way can change the job
                continue
            try:
                for what, faultless, following in self._steps(state):
                    report.steps += 1
                    if following.floating:
                        following = self._without_idle(following)
                    there = self._key(following)
                    if there not in came_from:
                        came_from[there] = (here, what)
                        queue.append((there, following))
                    if faultless:
                        progress_to.setdefault(there, []).append(here)
            except Wrong as wrong:
                report.wrong = wrong.args[0]
                report.trace = [*_trace(came_from, here), wrong.args[1]]
                return report
        if not queue:
            self._liveness(report, came_from, progress_to, done)
        return report

    def _liveness(
        self, report: Report, came_from: dict[Any, Any], progress_to: dict[Any, Any], done: list[Any]
    ) -> None:
        """From every state, without further faults, one must be reachable in which all is decided and ended."""
        alive, queue = set(done), deque(done)
        while queue:
            for earlier in progress_to.get(queue.popleft(), ()):
                if earlier not in alive:
                    alive.add(earlier)
                    queue.append(earlier)
        for key in came_from:  # in the order of discovery, so that the first is among the shortest
            if key not in alive:
                report.wrong = "a slot will never be decided, or a hold never ends"
                report.trace = _trace(came_from, key)
                return

    # --- the world -----------------------------------------------------------------------------------------------

    def _start(self) -> State:
        definition = Definition(
            handler="work",
            schedule={"kind": "slots"},
            retries=self.small.retries,
            backoff=Backoff(first=0),
            overlap=Overlap(self.small.overlap),
            catch_up=CatchUp("all"),
        )
        job = settle(Job(name="work", incarnation=0, definition=definition, cursor=0), self._timetable)
        log: tuple[tuple[Status, ...], ...] = ((),) * self.small.slots
        nodes = (Node(),) * self.small.nodes
        state = State(now=0, job=job, sessions=(), nodes=nodes, floating=(), log=log, left=self.small.faults)
        for i in range(self.small.nodes):  # the fleet is up before the first slot
            (begin,) = self._requests(state, i)
            state, reply = self._apply(state, begin, "")
            state = self._reply(state, begin, reply, "")
        return state

    def _done(self, state: State) -> bool:
        return state.job.cursor >= self.slots[-1] and not state.job.active and not state.job.waiting

    def _steps(self, state: State) -> Iterator[Step]:
        """Everything that can happen next."""
        for i, node in enumerate(state.nodes):
            name = "ABCDE"[i]
            if node.mode == "up":
                for request in self._requests(state, i):
                    yield from self._call(state, request, f"{name} {request.op} {request.session}{request.run[-4:]}")
                if state.left.freezes:
                    yield f"{name} freezes", False, _spend(_set(state, i, node._replace(mode="frozen")), "freezes")
                if state.left.kills and self._others_up(state, i):
                    yield f"{name} is killed", False, _spend(_set(state, i, _dead(node)), "kills")
            elif node.mode == "frozen":
                yield f"{name} thaws", True, _trust(_set(state, i, node._replace(mode="up")), i)
        for n, request in enumerate(state.floating):
            rest = state._replace(floating=state.floating[:n] + state.floating[n + 1 :])
            what = f"late: {'ABCDE'[request.node]} {request.op} {request.session}"
            yield what, False, self._apply(rest, request, what)[0]
        yield from self._tick(state)

    def _without_idle(self, state: State) -> State:
        """Without requests whose object is gone for good: not even a broken machine could make anything of them."""
        job = state.job
        runs = {hold.run for hold in job.active} | {owed.run for owed in job.owed}
        holders = {hold.session for hold in job.active}
        life = {one.name: one.state for one in state.sessions}

        def may_matter(one: Request) -> bool:
            if one.op == "finish":
                return one.run in runs
            if one.op == "claim":
                return life.get(one.session) is Life.LIVE or not self.small.rules.claim_needs_live_session
            return one.session in life or (one.op == "take_over" and one.session in holders)

        return state._replace(floating=tuple(filter(may_matter, state.floating)))

    def _others_up(self, state: State, i: int) -> bool:
        """One node is left to tell the tale; a frozen one will thaw."""
        return any(node.mode != "dead" for n, node in enumerate(state.nodes) if n != i)

    def _requests(self, state: State, i: int) -> Iterator[Request]:
        """What a node that trusts its session may ask of the store now."""
        node = state.nodes[i]
        if node.session is None:
            yield Request("begin", i, f"{'ABCDE'[i]}{node.begun}", sent_at=state.now)
            return
        due = state.job.due_at is not None and state.job.due_at <= state.now
        if due and not node.bodies and not node.wary:
            yield Request("claim", i, node.session, sent_at=state.now)
        for run, fence, _ in node.bodies:
            yield Request("finish", i, node.session, run, fence, sent_at=state.now)
        for other in state.sessions:
            if other.name == node.session:
                continue
            if session.expired(other, now=state.now):
                yield Request("bury", i, other.name, seen=other.beats, sent_at=state.now)
            elif other.state is Life.DEAD and (self.small.rules.dead_until_swept or node.swept == other.name):
                op = "swept" if node.swept == other.name and self.small.rules.dead_until_swept else "take_over"
                yield Request(op, i, other.name, sent_at=state.now)

    def _call(self, state: State, request: Request, what: str) -> Iterator[Step]:
        """A request and all that can become of it and of its sender."""
        i, left = request.node, state.left
        applied, reply = self._apply(state, request, what)
        yield what, True, self._reply(applied, request, reply, what)
        if request.op == "begin":
            return  # a session that its node does not know is like that of a node that was killed at once
        floats = state._replace(floating=(*state.floating, request))
        if left.lost_replies:
            yield f"{what} (reply lost)", False, _spend(self._unknown(applied, request), "lost_replies")
        if left.late:
            yield f"{what} (still on its way)", False, _spend(self._unknown(floats, request), "late")
        for fault, stop in (("freezes", _frozen), ("kills", _dead)):
            if getattr(left, fault) and (fault == "freezes" or self._others_up(state, i)):
                for after, when in ((floats, "sending"), (applied, "waiting for the reply")):
                    stopped = self._unknown(after, request)
                    yield (
                        f"{what} ({fault[:-1]} while {when})",
                        False,
                        _spend(_set(stopped, i, stop(stopped.nodes[i])), fault),
                    )

    def _unknown(self, state: State, request: Request) -> State:
        """Silence is not an answer: nothing is held until a beat shows it."""
        node = state.nodes[request.node]
        return _set(state, request.node, node._replace(wary=True)) if request.op == "claim" else state

    def _tick(self, state: State) -> Iterator[Step]:
        """Time passes and every node that runs renews; who can no longer prove its lease stops first."""
        if self.small.prompt and any(
            request.op != "finish"
            for i, node in enumerate(state.nodes)
            if node.mode == "up"
            for request in self._requests(state, i)
        ):
            return
        state = state._replace(now=state.now + TICK)
        for i, node in enumerate(state.nodes):
            if node.mode == "up":
                state = _trust(_set(state, i, node._replace(wary=False)), i)
        worlds: list[Step] = [("tick", True, state)]
        for i in range(len(state.nodes)):
            worlds = [step for before in worlds for step in self._beat(before, i)]
        yield from worlds

    def _beat(self, step: Step, i: int) -> Iterator[Step]:
        what, faultless, state = step
        node = state.nodes[i]
        if node.mode != "up" or node.session is None:
            yield step
            return
        request = Request("renew", i, node.session, sent_at=state.now)
        applied, reply = self._apply(state, request, what)
        yield what, faultless, self._reply(applied, request, reply, what)
        name = "ABCDE"[i]
        if state.left.lost_replies:
            yield f"{what}, {name}'s beat (reply lost)", False, _spend(applied, "lost_replies")
        if state.left.late:
            late = state._replace(floating=(*state.floating, request))
            yield f"{what}, {name}'s beat (still on its way)", False, _spend(late, "late")

    # --- the store -----------------------------------------------------------------------------------------------

    def _apply(self, state: State, request: Request, what: str) -> tuple[State, Any]:
        """One atomic step of the store: the machine's own function, and the log with it."""
        if request.op in ("begin", "renew", "bury", "swept"):
            return self._apply_to_session(state, request, what)
        if request.op == "claim" and self.small.rules.claim_needs_live_session:
            found = _session(state, request.session)
            if found is None or found.state is not Life.LIVE:
                return state, "not alive"
        now = request.sent_at if self.small.swap else state.now
        known = (id(state.job), request.op, request.session, request.fence, now)
        if known not in self._changes:
            self._changes[known] = (state.job, self._change(state.job, request, now))
        change = self._changes[known][1]
        if change is None:
            return state, None
        after = change.doc
        assert isinstance(after, Job)
        self._check(state, request, after, change, what)
        floating = state.floating
        if self.small.swap:  # what was computed from the document as it was cannot be committed any more
            floating = tuple(one for one in floating if one.op not in ("claim", "finish", "take_over"))
        log = _written(state.log, change.entries, what)
        return state._replace(job=after, log=log, floating=floating), change.answer

    def _change(self, job: Job, request: Request, now: int) -> Change | None:
        if request.op == "claim":
            by = Claimant(session=request.session, node=str(request.node), late_for=LATE_FOR)
            return claim(job, now=now, by=by, resolve=self.resolve)
        if request.op == "finish":
            done = ending.Outcome.succeeded()
            return ending.finish(job, run=request.run, fence=request.fence, outcome=done, now=now, resolve=self.resolve)
        return ending.take_over(job, session=request.session, now=now, reason="died", resolve=self.resolve)

    def _apply_to_session(self, state: State, request: Request, what: str) -> tuple[State, Any]:
        found = _session(state, request.session)
        doc: Session | Absent = Absent(Kind.SESSION, request.session) if found is None else found
        if request.op == "begin":
            new = Session(name=request.session, node=str(request.node), host="", pid=0, lease=LEASE)
            change = session.begin(doc, new, now=state.now)
        elif request.op == "renew":
            change = session.renew(doc, now=state.now)
            if change is not None and (found is None or found.state is not Life.LIVE):
                raise Wrong("I4: a buried session was renewed", what)
        elif request.op == "bury":
            change = session.bury(doc, now=state.now, reason="expired", seen=request.seen)
        else:
            change = session.swept(doc, now=state.now)
        if change is None:
            return state, None
        others = [one for one in state.sessions if one.name != request.session]
        assert isinstance(change.doc, Session)
        if change.doc.state is not Life.SWEPT:  # swept ones may be pruned at once: a missing session counts as dead
            others.append(change.doc)
        return state._replace(sessions=tuple(sorted(others, key=lambda one: one.name))), "done"

    # --- the nodes -----------------------------------------------------------------------------------------------

    def _reply(self, state: State, request: Request, reply: Any, what: str) -> State:
        """The node learns what became of its request."""
        i, node = request.node, state.nodes[request.node]
        if request.op == "begin":
            until = request.sent_at + LEASE
            return _set(state, i, node._replace(session=request.session, trusted_until=until, begun=node.begun + 1))
        if request.op == "renew":
            if reply is None:
                return _set(state, i, _lost(node))
            state = _set(state, i, node._replace(trusted_until=request.sent_at + LEASE))
            return self._reconcile(state, i, what) if self.small.rules.reconcile else state
        if request.op == "claim":
            if reply == "not alive":
                return _set(state, i, _lost(node))
            return self._start_body(state, i, reply, what) if isinstance(reply, Hold) else state
        if request.op == "finish":
            return _set(state, i, node._replace(bodies=tuple(b for b in node.bodies if b[1] != request.fence)))
        if request.op == "swept":
            return _set(state, i, node._replace(swept=None))
        if request.op == "bury" and self.small.rules.dead_until_swept:
            return state
        mark = request.session if request.op == "bury" or self.small.rules.dead_until_swept else None
        return _set(state, i, node._replace(swept=mark))

    def _reconcile(self, state: State, i: int, what: str) -> State:
        node = state.nodes[i]
        known = {fence for _, fence, _ in node.bodies}
        for hold in state.job.active:
            if hold.session == node.session and hold.fence not in known:
                state = self._start_body(state, i, hold, what)
        return state

    def _start_body(self, state: State, i: int, hold: Hold, what: str) -> State:
        for n, other in enumerate(state.nodes):
            if n != i and other.mode == "up" and any(slot == hold.slot for _, _, slot in other.bodies):
                raise Wrong("I8: a second body starts beside one that still runs", what)
        node = state.nodes[i]
        return _set(state, i, node._replace(bodies=(*node.bodies, (hold.run, hold.fence, hold.slot))))

    # --- what must hold ------------------------------------------------------------------------------------------

    def _check(self, state: State, request: Request, after: Job, change: Change, what: str) -> None:
        before = state.job
        if len(after.active) > after.definition.overlap.most:
            raise Wrong("I1, I9: two live claims", what)
        old = {hold.fence for hold in before.active}
        if after.fence < before.fence or any(h.fence <= before.fence for h in after.active if h.fence not in old):
            raise Wrong("I3: the fence does not grow", what)
        if request.op == "finish":
            stands = any((hold.run, hold.fence) == (request.run, request.fence) for hold in before.active)
            if stands != (after is not before):
                raise Wrong("I4: a stale write had an effect, or a rightful one had none", what)
        if after.cursor < before.cursor:
            raise Wrong("I11: the cursor goes back", what)
        waiting = {one.slot for one in after.active} | {one.slot for one in after.owed}
        recorded = {entry.record.slot for entry in change.entries}
        for slot in self.slots:
            spanned = any(stretch.first <= slot <= stretch.last for stretch in after.stretches)
            if before.cursor < slot <= after.cursor and slot not in waiting | recorded and not spanned:
                raise Wrong("I11: the cursor passes a slot without a word", what)
        for hold in after.active:
            if hold.attempt > 1 + self.small.retries:
                raise Wrong("I20: more attempts than were allowed", what)

    # --- which states are the same ---------------------------------------------------------------------------------

    def _key(self, state: State) -> Any:
        """States that differ only in the time of day, the size of fences and who is called A or B are one."""
        now, nodes = state.now, state.nodes
        looks = [
            (node.mode, node.trusted_until - now, [slot for _, _, slot in node.bodies], node.wary, node.swept is None)
            for node in nodes
        ]
        order = sorted(range(len(nodes)), key=looks.__getitem__)
        if all(looks[a] != looks[b] for a, b in pairwise(order)):
            return self._view(state, tuple(order))
        return min((self._view(state, order) for order in permutations(range(len(nodes)))), key=hash)

    def _view(self, state: State, order: tuple[int, ...]) -> Any:
        """The state as it looks with the nodes in this order, without what no step can ever depend on."""
        now, job = state.now, state.job
        mine = {fence for node in state.nodes for _, fence, _ in node.bodies}
        mine.update(one.fence for one in state.floating if one.op == "finish")
        rank = {fence: n for n, fence in enumerate(sorted(mine | {hold.fence for hold in job.active}))}
        place = {f"{'ABCDE'[i]}": n for n, i in enumerate(order)}
        current = {node.session: "current" for node in state.nodes}
        names = {one.name for one in state.sessions} | {one.session for one in state.floating}
        names.update(hold.session for hold in job.active)
        label: dict[str | None, tuple[int, Any]] = {None: (-1, "")}
        for name in sorted(names | {node.session for node in state.nodes if node.session}):
            # A node's sessions follow one another: all that counts is which is its own and how they are ordered.
            label[name] = (place[name[0]], current.get(name, sum(other[:1] == name[0] for other in label if other)))

        def age(us: int, oldest: int = 0) -> int:
            return max((us - now) // TICK, -oldest)

        beats = {one.name: one.beats for one in state.sessions}
        return (
            tuple([age(slot, OLD) for slot in self.slots if slot > job.cursor]),
            tuple([(h.slot, h.attempt, label[h.session], rank[h.fence], h.cancel is None) for h in job.active]),
            tuple([(o.slot, o.attempt) for o in job.owed]),
            tuple([(s.first, s.last) for s in job.stretches]),
            tuple([rank[fence] for fence in job.accepted if fence in mine]),
            frozenset([(label[s.name], s.state, age(s.expires_at)) for s in state.sessions]),
            tuple([self._view_of_node(state.nodes[i], label, rank, age) for i in order]),
            frozenset(
                [
                    (
                        one.op,
                        place["ABCDE"[one.node]],
                        label[one.session],
                        rank.get(one.fence),
                        one.op == "bury" and one.seen == beats.get(one.session),
                        self.small.swap and age(one.sent_at, OLD),
                    )
                    for one in state.floating
                ]
            ),
            state.log,
            state.left,
        )

    def _view_of_node(
        self, node: Node, label: Mapping[str | None, Any], rank: Mapping[int, int], age: Callable[[int], int]
    ) -> Any:
        trust = 0 if node.session is None else age(node.trusted_until)
        bodies = tuple([(slot, rank[fence]) for _, fence, slot in node.bodies])
        return node.mode, label[node.session], trust, bodies, label.get(node.swept), node.wary


# --- small helpers ---------------------------------------------------------------------------------------------------


def _set(state: State, i: int, node: Node) -> State:
    return state._replace(nodes=(*state.nodes[:i], node, *state.nodes[i + 1 :]))


def _spend(state: State, fault: str) -> State:
    together = state.left.together - 1
    left = state.left._replace(**{fault: getattr(state.left, fault) - 1}, together=together)
    return state._replace(left=left if together else Faults(0, 0, 0, 0, 0))


def _dead(node: Node) -> Node:
    return Node(mode="dead", begun=node.begun)


def _frozen(node: Node) -> Node:
    return node._replace(mode="frozen")


def _lost(node: Node) -> Node:
    """It cannot prove its lease any more: every body stops, nothing is written, a new session comes next."""
    return Node(mode=node.mode, begun=node.begun)


def _trust(state: State, i: int) -> State:
    node = state.nodes[i]
    if node.session is not None and state.now >= node.trusted_until:
        return _set(state, i, _lost(node))
    return state


def _session(state: State, name: str) -> Session | None:
    return next((one for one in state.sessions if one.name == name), None)


def _written(
    log: tuple[tuple[Status, ...], ...], entries: tuple[Entry, ...], what: str
) -> tuple[tuple[Status, ...], ...]:
    """The log with these entries; what is opened twice, closed twice or opened after its end is wrong."""
    rows = list(log)
    for entry in entries:
        record = entry.record
        for slot in range((record.first or record.slot) // TICK - 1, record.slot // TICK):
            row = rows[slot]
            if entry.op is Op.OPEN:
                if row and row[-1] is not Status.LOST:
                    raise Wrong("I2: a slot is claimed or recorded again after its end", what)
                if record.attempt not in (0, len(row) + 1):
                    raise Wrong("I2: attempts do not count up by one", what)
                rows[slot] = (*row, record.status)
            elif not row or row[-1] is not Status.RUNNING:
                raise Wrong("I6: an attempt ends twice", what)
            else:
                rows[slot] = (*row[:-1], record.status)
    return tuple(rows)


def _trace(came_from: Mapping[Any, tuple[Any, str]], key: Any) -> list[str]:
    steps: list[str] = []
    while key is not None:
        key, what = came_from[key]
        if what:
            steps.append(what)
    return steps[::-1]
