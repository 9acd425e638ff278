"""Nodes, workers and a broker around a store whose steps are the machine's own functions.

The broker may lose, double, delay and reorder messages. A process may be killed or freeze at any moment, also between
sending a request and its reply, and the reply of the store or the broker may be lost. A step that breaks a safety rule
raises `Wrong`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proof.explorer import Wrong
from proof.offers.state import (
    COPIES,
    LEASE,
    NODES,
    PICKUP,
    TICK,
    WORKERS,
    Offers,
    Process,
    Request,
    State,
    Ticket,
    key_of,
    spend,
    with_process,
)
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents import session
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import Life, Session
from solocron.model.policy import Backoff
from solocron.model.timetable import EMPTY, Timetable
from solocron.model.transitions import claiming, commands, finishing, offering
from solocron.model.transitions.claimant import Claimant

__all__ = ["OffersWorld"]

Step = tuple[str, bool, State]
CARRIER = "queue"
ALL = NODES + WORKERS


class OffersWorld:
    """All that can happen, one step at a time."""

    def __init__(self, offers: Offers) -> None:
        self.offers = offers
        self.runs: list[str] = []
        self._changes: dict[Any, tuple[Job, Change | None]] = {}
        """Results of the machine by the id of a document, kept with the document, so that the id is not reused."""

    def start(self) -> State:
        """The fleet is up, the runs wait, and no worker has had a message yet."""
        definition = Definition(
            handler="work", schedule=None, retries=self.offers.retries, backoff=Backoff(first=0), run_in=CARRIER,
            hand_over={},
        )  # fmt: skip
        job = Job(name="work", incarnation=0, definition=definition, cursor=0)
        for n in range(self.offers.runs):
            change = commands.trigger(job, request=f"r{n}", payload=None, at=None, now=TICK, resolve=_resolve)
            assert change is not None
            assert isinstance(change.doc, Job)
            job = change.doc
            self.runs.append(change.answer)
        none: frozenset[Ticket] = frozenset()
        state = State(
            now=TICK, job=job, sessions=(), processes=(Process(),) * len(ALL), queue=(), floating=(),
            handed=none, picked=none, started=none, ended=((),) * self.offers.runs, left=self.offers.faults,
        )  # fmt: skip
        for who in NODES:
            state = self._begin(state, who)
        return state

    def key(self, state: State) -> Any:
        return key_of(state)

    def done(self, state: State) -> bool:
        """Every run has ended, and no process is left with one."""
        return not state.job.active and not state.job.waiting and not any(p.does == "runs" for p in state.processes)

    def over(self, state: State) -> bool:
        """Whether no message and no request is left that could start anything."""
        return self.done(state) and not state.queue and not any(p.does for p in state.processes)

    def without_idle(self, state: State) -> State:
        """Return the state without requests whose object is gone for good."""
        known = {hold.run for hold in state.job.active} | {one.run for one in state.job.waiting_runs}
        holders = {hold.session for hold in state.job.active}
        names = {one.name for one in state.sessions}

        def may_matter(one: Request) -> bool:
            if one.op in ("bury", "take over", "swept"):
                return one.session in names or (one.op == "take over" and one.session in holders)
            return self.runs[one.ticket[0]] in known or one.op == "claim"

        return state._replace(floating=tuple(filter(may_matter, state.floating))) if state.floating else state

    # --- what can happen -----------------------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[Step]:
        for who in ALL:
            process = _of(state, who)
            if process.mode == "up":
                for request in self._requests(state, who):
                    yield from self._call(state, request)
                yield from self._publish(state, who) if process.does == "publishes" else ()
                if state.left.freezes:
                    yield (
                        f"{who} freezes",
                        False,
                        spend(with_process(state, who, process._replace(mode="frozen")), "freezes"),
                    )
                if state.left.kills and self._may_die(state, who):
                    yield f"{who} is killed", False, spend(with_process(state, who, _dead(process)), "kills")
            elif process.mode == "frozen":
                yield f"{who} thaws", True, _trust(with_process(state, who, process._replace(mode="up")), who)
        for n, request in enumerate(state.floating):
            rest = state._replace(floating=state.floating[:n] + state.floating[n + 1 :])
            what = f"late: {_shown(request)}"
            yield what, False, self._apply(rest, request, what)[0]
        yield from self._broker(state)
        yield from self._tick(state)

    def _requests(self, state: State, who: str) -> Iterator[Request]:
        """Yield the requests to the store that a process may send now."""
        process = _of(state, who)
        if process.session is None:
            return
        if process.does in ("hands over", "puts back", "picks up", "runs"):
            yield Request(process.does, who, process.session, process.ticket, process.fence)
        due = state.job.due_at is not None and state.job.due_at <= state.now
        if who in NODES and not process.does and not process.wary and due:
            yield Request("claim", who, process.session)
        for other in state.sessions if who in NODES else ():
            if other.name == process.session:
                continue
            if other.state is Life.LIVE and other.expires_at <= state.now:
                yield Request("bury", who, other.name, seen=other.beats)
            elif other.state is Life.DEAD:
                yield Request("swept" if process.swept == other.name else "take over", who, other.name)

    def _call(self, state: State, request: Request) -> Iterator[Step]:
        """Yield a request and all that can become of it and of its sender."""
        what, who, left = _shown(request), request.who, state.left
        applied, reply = self._apply(state, request, what)
        yield what, True, self._reply(applied, request, reply, what)
        if left.lost_answers:
            yield f"{what} (answer lost)", False, spend(self._unknown(applied, request), "lost_answers")
        floats = state._replace(floating=(*state.floating, request))
        for after, when in ((floats, "sending"), (applied, "waiting for the answer")):
            process = _of(self._unknown(after, request), who)
            if left.freezes:
                frozen = with_process(self._unknown(after, request), who, process._replace(mode="frozen"))
                yield f"{what} (frozen while {when})", False, spend(frozen, "freezes")
            if left.kills and self._may_die(state, who):
                yield f"{what} (killed while {when})", False, spend(with_process(after, who, _dead(process)), "kills")

    def _unknown(self, state: State, request: Request) -> State:
        """Return the state of a sender that has no answer."""
        process = _of(state, request.who)
        if request.op == "claim":
            return with_process(state, request.who, process._replace(wary=True))
        if request.op == "picks up" and not self.offers.rules.pick_up_is_repeated:
            return with_process(state, request.who, process.idle())
        return state

    def _publish(self, state: State, who: str) -> Iterator[Step]:
        """Yield a publication and all that can become of the message and of the answer."""
        process, left = _of(state, who), state.left
        ticket = process.ticket
        out = with_process(state, who, process._replace(does="hands over"))
        in_doubt = with_process(state, who, process._replace(does="puts back"))
        what = f"{who} publishes {ticket}"
        yield what, True, _enqueued(out, ticket)
        if left.lost_messages:
            yield f"{what} (message lost)", False, spend(out, "lost_messages")
        if left.doubled_messages:
            yield f"{what} (twice)", False, spend(_enqueued(_enqueued(out, ticket), ticket), "doubled_messages")
        if left.lost_answers:
            yield f"{what} (answer lost)", False, spend(_enqueued(in_doubt, ticket), "lost_answers")
            yield f"{what} (refused)", False, spend(in_doubt, "lost_answers")
        if left.kills and self._may_die(state, who):
            yield f"{what} (killed)", False, spend(_enqueued(with_process(state, who, _dead(process)), ticket), "kills")
        if left.freezes:
            frozen = with_process(state, who, process._replace(mode="frozen", does="hands over"))
            yield f"{what} (frozen)", False, spend(_enqueued(frozen, ticket), "freezes")

    def _broker(self, state: State) -> Iterator[Step]:
        """Yield deliveries in any order, losses, doubles, and messages that no node has sent."""
        for ticket in dict.fromkeys(state.queue):
            rest = state._replace(queue=_less(state.queue, ticket))
            for who in WORKERS:
                process = _of(state, who)
                if process.mode == "up" and not process.does:
                    got = with_process(rest, who, process._replace(does="picks up", ticket=ticket))
                    yield f"{who} gets {ticket}", True, got if process.session else self._begin(got, who)
            if state.left.lost_messages:
                yield f"{ticket} is lost", False, spend(rest, "lost_messages")
            if state.left.doubled_messages:
                yield f"{ticket} is doubled", False, spend(_enqueued(state, ticket), "doubled_messages")
        if state.left.forged_messages:
            for n in range(self.offers.runs):
                for attempt in range(1, self.offers.retries + 2):
                    yield f"{n, attempt} is forged", False, spend(_enqueued(state, (n, attempt)), "forged_messages")

    def _tick(self, state: State) -> Iterator[Step]:
        """Let time pass, once every process has done what it can; bodies may take longer."""
        for who in ALL:
            process = _of(state, who)
            if process.mode == "up" and (
                process.does == "publishes" or any(one.op != "runs" for one in self._requests(state, who))
            ):
                return
        free = any(_of(state, who).mode == "up" and not _of(state, who).does for who in WORKERS)
        delayed = bool(state.queue) and free
        if delayed and not state.left.delays:
            return
        state = spend(state, "delays") if delayed else state
        state = state._replace(now=state.now + TICK)
        for who in ALL:
            process = _of(state, who)
            if process.mode != "up":
                continue
            state = _trust(with_process(state, who, process._replace(wary=False)), who)
            process = _of(state, who)
            if process.session is not None:
                state = self._beat(state, who, process.session)
            elif who in NODES:
                state = self._begin(state, who)
        yield "tick (messages wait)" if delayed else "tick", not delayed, state

    def _beat(self, state: State, who: str, name: str) -> State:
        """Renew. A node takes on a claim of its session that it does not know, and a worker gives it back."""
        state, reply = self._on_session(state, "renew", name, seen=0)
        process = _of(state, who)
        if reply is None:
            return with_process(state, who, process.lost())
        state = with_process(state, who, process._replace(trusted_until=state.now + LEASE))
        for hold in state.job.active if not process.does else ():
            if hold.session == name and who in NODES:
                return self._granted(state, who, hold)
            if hold.session == name and self.offers.rules.unknown_hold_is_given_back:
                ticket = (self.runs.index(hold.run), hold.attempt)
                given_back = Request("gives back", who, name, ticket, hold.fence)
                return self._apply(state, given_back, _shown(given_back))[0]
        return state

    # --- the store -----------------------------------------------------------------------------------------------

    def _begin(self, state: State, who: str) -> State:
        process = _of(state, who)
        name = f"{who}{process.begun}"
        state, _ = self._on_session(state, "begin", name, seen=0)
        new = process._replace(session=name, trusted_until=state.now + LEASE, begun=process.begun + 1)
        return with_process(state, who, new)

    def _on_session(self, state: State, op: str, name: str, *, seen: int) -> tuple[State, Any]:
        found = next((one for one in state.sessions if one.name == name), None)
        doc: Session | Absent = Absent(Kind.SESSION, name) if found is None else found
        if op == "begin":
            change = session.begin(doc, Session(name=name, node=name[0], host="", pid=0, lease=LEASE), now=state.now)
        elif op == "renew":
            change = session.renew(doc, now=state.now)
        elif op == "bury":
            change = session.bury(doc, now=state.now, reason="expired", seen=seen)
        else:
            change = session.swept(doc, now=state.now)
        if change is None:
            return state, None
        others = [one for one in state.sessions if one.name != name]
        assert isinstance(change.doc, Session)
        if change.doc.state is not Life.SWEPT:  # swept ones may be pruned at once: a missing session counts as dead
            others.append(change.doc)
        return state._replace(sessions=tuple(sorted(others, key=lambda one: one.name))), "done"

    def _apply(self, state: State, request: Request, what: str) -> tuple[State, Any]:
        """Apply one atomic step of the store: the machine's own function, and the log with it."""
        if request.op in ("bury", "swept"):
            return self._on_session(state, request.op, request.session, seen=request.seen)
        tied = request.op == "claim" or (request.op == "picks up" and self.offers.rules.pick_up_needs_live_session)
        live = any(one.name == request.session and one.state is Life.LIVE for one in state.sessions)
        if tied and not live:
            return state, "not alive"
        known = (id(state.job), request.op, request.session, request.ticket, request.fence, state.now)
        if known not in self._changes:
            self._changes[known] = (state.job, self._change(state.job, request, state.now))
        change = self._changes[known][1]
        if change is None:
            return state, None
        return self._checked(state, request, change, what), change.answer

    def _change(self, job: Job, request: Request, now: int) -> Change | None:
        run = self.runs[request.ticket[0]]
        by = Claimant(session=request.session, node=request.who, late_for=LEASE, carriers={CARRIER: True})
        if request.op == "claim":
            return claiming.claim(job, now=now, by=by, resolve=_resolve)
        if request.op == "hands over":
            return offering.hand_over(job, run=run, fence=request.fence, pickup=PICKUP, now=now, resolve=_resolve)
        if request.op == "puts back":
            return offering.put_back(job, run=run, fence=request.fence, wait=0, note=None, now=now, resolve=_resolve)
        if request.op == "picks up":
            return offering.pick_up(job, run=run, attempt=request.ticket[1], now=now, by=by, resolve=_resolve)
        if request.op == "runs":
            done = finishing.Outcome.succeeded()
            return finishing.finish(job, run=run, fence=request.fence, outcome=done, now=now, resolve=_resolve)
        if request.op == "gives back":
            return finishing.hand_back(job, run=run, fence=request.fence, now=now, reason="late", resolve=_resolve)
        return finishing.take_over(job, session=request.session, now=now, reason="died", resolve=_resolve)

    def _checked(self, state: State, request: Request, change: Change, what: str) -> State:
        """Return the state after a change; raise `Wrong` if the change breaks a rule."""
        before, after = state.job, change.doc
        assert isinstance(after, Job)
        if after is before:
            return state
        if len(after.active) > after.definition.overlap.most:
            raise Wrong("two live claims", what)
        old = {hold.fence for hold in before.active}
        if request.op == "runs" and request.fence not in old:
            raise Wrong("a stale end had an effect", what)
        if after.fence < before.fence or any(h.fence <= before.fence for h in after.active if h.fence not in old):
            raise Wrong("the fence does not grow", what)
        ended = list(state.ended)
        for record in change.records:
            n = self.runs.index(record.run)
            if (n, record.attempt) not in state.picked:
                raise Wrong("a run ended that no worker had picked up", what)
            if record.attempt != len(ended[n]) + 1 or Status.SUCCEEDED in ended[n]:
                raise Wrong("attempts do not count up by one", what)
            ended[n] = (*ended[n], record.status)
        for hold in after.active:
            ticket = (self.runs.index(hold.run), hold.attempt)
            if hold.fence in old:
                continue
            given_back = ended[ticket[0]].count(Status.CANCELLED)  # which uses up no retry
            if hold.attempt != len(ended[ticket[0]]) + 1 or hold.attempt > self.offers.retries + 1 + given_back:
                raise Wrong("an attempt is claimed that is over, or a retry was used up by no crash", what)
            if hold.handing:
                state = state._replace(handed=state.handed | {ticket})
            elif ticket not in state.handed:
                raise Wrong("a message that no node had published was picked up", what)
            else:
                state = state._replace(picked=state.picked | {ticket})
        return state._replace(job=after, ended=tuple(ended))

    # --- the processes -------------------------------------------------------------------------------------------

    def _reply(self, state: State, request: Request, reply: Any, what: str) -> State:
        """Return the state after a process has learnt what became of its request."""
        who, process = request.who, _of(state, request.who)
        if reply == "not alive":
            return with_process(state, who, process.lost())
        if request.op in ("claim", "picks up"):
            if isinstance(reply, Hold):
                return self._granted(state, who, reply, what)
            return state if request.op == "claim" else with_process(state, who, process.idle())
        if request.op in ("hands over", "puts back", "runs"):
            return with_process(state, who, process.idle())
        if request.op == "take over":
            return with_process(state, who, process._replace(swept=request.session))
        return with_process(state, who, process._replace(swept=None)) if request.op == "swept" else state

    def _granted(self, state: State, who: str, hold: Hold, what: str = "") -> State:
        """Begin what a hold allows: a node publishes, a worker starts the body."""
        ticket, process = (self.runs.index(hold.run), hold.attempt), _of(state, who)
        if who in NODES:
            return with_process(state, who, process._replace(does="publishes", ticket=ticket, fence=hold.fence))
        if ticket in state.started:
            raise Wrong("the body of an attempt starts twice", what)
        for other in WORKERS:
            beside = _of(state, other)
            if other != who and beside.mode == "up" and beside.does == "runs" and beside.ticket[0] == ticket[0]:
                raise Wrong("a second body starts beside one that still runs", what)
        state = state._replace(started=state.started | {ticket})
        return with_process(state, who, process._replace(does="runs", ticket=ticket, fence=hold.fence))

    def _may_die(self, state: State, who: str) -> bool:
        """Whether another process of its kind is left; a frozen one will thaw."""
        kind = NODES if who in NODES else WORKERS
        return any(_of(state, other).mode != "dead" for other in kind if other != who)


def _resolve(spec: Mapping[str, Any] | None) -> Timetable:
    return EMPTY


def _of(state: State, who: str) -> Process:
    return state.processes[ALL.index(who)]


def _dead(process: Process) -> Process:
    return Process(mode="dead", begun=process.begun)


def _trust(state: State, who: str) -> State:
    """The first thing after any sleep: is the session still to be trusted?"""
    process = _of(state, who)
    if process.session is not None and state.now >= process.trusted_until:
        return with_process(state, who, process.lost())
    return state


def _enqueued(state: State, ticket: Ticket) -> State:
    return state if state.queue.count(ticket) >= COPIES else state._replace(queue=tuple(sorted((*state.queue, ticket))))


def _less(queue: tuple[Ticket, ...], ticket: Ticket) -> tuple[Ticket, ...]:
    i = queue.index(ticket)
    return queue[:i] + queue[i + 1 :]


def _shown(request: Request) -> str:
    about = request.session if request.op in ("bury", "take over", "swept") else request.ticket
    return f"{request.who} {request.op} {about}"
