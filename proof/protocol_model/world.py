"""A fleet reduced to the rules of the lease protocol, around a store whose steps are the machine's own functions.

Each step of the store is atomic. A request may be lost, answered into the void, or applied at any time later, also
after its sender froze or died; its sender learns nothing of that. A step that breaks a safety rule raises `Wrong`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proof.explorer import Wrong
from proof.protocol_model.rules import check, written
from proof.protocol_model.state import (
    LATE_FOR,
    LEASE,
    NAMES,
    TICK,
    Log,
    Node,
    Request,
    Small,
    State,
    frozen,
    key_of,
    killed,
    lost,
    spend,
    trust,
    with_node,
)
from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents import session
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.session import Life, Session
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.model.timetable import Timetable
from solocron.model.transitions import finishing
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import claim, recompute_due
from solocron.schedules import Every

__all__ = ["SmallWorld", "Step"]


Step = tuple[str, bool, State]
"""A step: its name, whether it needs no fault, and the state after it."""


class SmallWorld:
    """All that can happen, one step at a time."""

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
        """Results of the machine by the id of a document, kept with the document, so that the id is not reused."""
        self._timetable = Timetable(Slots(TICK / SECOND))

    def resolve(self, spec: Mapping[str, Any] | None) -> Timetable:
        return self._timetable

    def key(self, state: State) -> Any:
        """Equal for states that are the same but for the time of day, the size of fences and names."""
        return key_of(state, self.slots, swap=self.small.swap)

    def start(self) -> State:
        """The fleet is up, and the first slot is a tick away."""
        definition = Definition(
            handler="work",
            schedule={"kind": "slots"},
            retries=self.small.retries,
            backoff=Backoff(first=0),
            overlap=Overlap(self.small.overlap),
            catch_up=CatchUp("all"),
        )
        job = recompute_due(Job(name="work", incarnation=0, definition=definition, cursor=0), self._timetable)
        log: Log = ((),) * self.small.slots
        nodes = (Node(),) * self.small.nodes
        state = State(now=0, job=job, sessions=(), nodes=nodes, floating=(), log=log, left=self.small.faults)
        for i in range(self.small.nodes):
            (begin,) = self._requests(state, i)
            state, reply = self._apply(state, begin, "")
            state = self._reply(state, begin, reply, "")
        return state

    def done(self, state: State) -> bool:
        """Every slot is decided and nothing is held or waits; no request on its way can change that."""
        return state.job.cursor >= self.slots[-1] and not state.job.active and not state.job.waiting

    over = done

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that can happen next."""
        for i, node in enumerate(state.nodes):
            name = NAMES[i]
            if node.mode == "up":
                for request in self._requests(state, i):
                    yield from self._call(state, request, f"{name} {request.op} {request.session}{request.run[-4:]}")
                if state.left.freezes:
                    yield f"{name} freezes", False, spend(with_node(state, i, node._replace(mode="frozen")), "freezes")
                if state.left.kills and self._others_up(state, i):
                    yield f"{name} is killed", False, spend(with_node(state, i, killed(node)), "kills")
            elif node.mode == "frozen":
                yield f"{name} thaws", True, trust(with_node(state, i, node._replace(mode="up")), i)
        for n, request in enumerate(state.floating):
            rest = state._replace(floating=state.floating[:n] + state.floating[n + 1 :])
            what = f"late: {NAMES[request.node]} {request.op} {request.session}"
            yield what, False, self._apply(rest, request, what)[0]
        yield from self._tick(state)

    def without_idle(self, state: State) -> State:
        """Without requests whose object is gone for good: not even a broken machine could make anything of them."""
        if not state.floating:
            return state
        job = state.job
        runs = {hold.run for hold in job.active} | {waiting_run.run for waiting_run in job.waiting_runs}
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
        """Yield the requests that a node may send now, if it trusts its session."""
        node = state.nodes[i]
        if node.session is None:
            yield Request("begin", i, f"{NAMES[i]}{node.begun}", sent_at=state.now)
            return
        due = state.job.due_at is not None and state.job.due_at <= state.now
        if due and not node.bodies and not node.wary:
            yield Request("claim", i, node.session, sent_at=state.now)
        for run, fence, _ in node.bodies:
            yield Request("finish", i, node.session, run, fence, sent_at=state.now)
        for other in state.sessions:
            if other.name == node.session:
                continue
            if other.state is Life.LIVE and other.expires_at <= state.now:
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
            yield f"{what} (reply lost)", False, spend(self._unknown(applied, request), "lost_replies")
        if left.late:
            yield f"{what} (still on its way)", False, spend(self._unknown(floats, request), "late")
        for fault, stop in (("freezes", frozen), ("kills", killed)):
            if getattr(left, fault) and (fault == "freezes" or self._others_up(state, i)):
                for after, when in ((floats, "sending"), (applied, "waiting for the reply")):
                    stopped = self._unknown(after, request)
                    yield (
                        f"{what} ({fault[:-1]} while {when})",
                        False,
                        spend(with_node(stopped, i, stop(stopped.nodes[i])), fault),
                    )

    def _unknown(self, state: State, request: Request) -> State:
        """Silence is not an answer: nothing is held until a beat shows it."""
        node = state.nodes[request.node]
        return with_node(state, request.node, node._replace(wary=True)) if request.op == "claim" else state

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
                state = trust(with_node(state, i, node._replace(wary=False)), i)
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
        name = NAMES[i]
        if state.left.lost_replies:
            yield f"{what}, {name}'s beat (reply lost)", False, spend(applied, "lost_replies")
        if state.left.late:
            late = state._replace(floating=(*state.floating, request))
            yield f"{what}, {name}'s beat (still on its way)", False, spend(late, "late")

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
        check(state.job, request, change, what, slots=self.slots, retries=self.small.retries)
        floating = state.floating
        if (
            self.small.swap and after is not state.job
        ):  # what was computed from the document as it was cannot be committed any more
            floating = tuple(one for one in floating if one.op not in ("claim", "finish", "take_over"))
        log = written(state.log, state.job, change, what)
        return state._replace(job=after, log=log, floating=floating), change.answer

    def _change(self, job: Job, request: Request, now: int) -> Change | None:
        if request.op == "claim":
            by = Claimant(session=request.session, node=str(request.node), late_for=LATE_FOR)
            return claim(job, now=now, by=by, resolve=self.resolve)
        if request.op == "finish":
            done = finishing.Outcome.succeeded()
            return finishing.finish(
                job, run=request.run, fence=request.fence, outcome=done, now=now, resolve=self.resolve
            )
        return finishing.take_over(job, session=request.session, now=now, reason="died", resolve=self.resolve)

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
            return with_node(
                state, i, node._replace(session=request.session, trusted_until=until, begun=node.begun + 1)
            )
        if request.op == "renew":
            if reply is None:
                return with_node(state, i, lost(node))
            state = with_node(state, i, node._replace(trusted_until=request.sent_at + LEASE))
            return self._reconcile(state, i, what) if self.small.rules.reconcile else state
        if request.op == "claim":
            if reply == "not alive":
                return with_node(state, i, lost(node))
            return self._start_body(state, i, reply, what) if isinstance(reply, Hold) else state
        if request.op == "finish":
            return with_node(state, i, node._replace(bodies=tuple(b for b in node.bodies if b[1] != request.fence)))
        if request.op == "swept":
            return with_node(state, i, node._replace(swept=None))
        if request.op == "bury" and self.small.rules.dead_until_swept:
            return state
        mark = request.session if request.op == "bury" or self.small.rules.dead_until_swept else None
        return with_node(state, i, node._replace(swept=mark))

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
        return with_node(state, i, node._replace(bodies=(*node.bodies, (hold.run, hold.fence, hold.slot))))


def _session(state: State, name: str) -> Session | None:
    return next((one for one in state.sessions if one.name == name), None)
