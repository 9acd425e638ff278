"""The oracle: any store does with a long random story exactly what the reference does, step by step.

Both are told the same story by the real machine, in lockstep. Instants come from a script on a grid of minutes and
not from the stores, whose clocks are shifted to just after the script's time: what is due for one is due for the
other, however slow the machine, and documents and log can be compared to the microsecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from solocron.clock import SECOND
from solocron.model.applications import Peers
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import session
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import Session
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.model.transitions import claiming, commands, finishing, registration
from solocron.model.transitions.finishing import Outcome
from solocron.stores.contract import (
    All,
    Applied,
    Due,
    HeldBy,
    HeldByAny,
    Mark,
    Named,
    Query,
    RecentSessions,
    Store,
    Verdict,
    Which,
)
from solocron.stores.memory import MemoryStore
from solocron.testing.conformance.kit import bury_expired
from solocron.testing.conformance.life import resolve

__all__ = ["same_as_memory"]

MINUTE = 60 * SECOND
BEGIN = 2_062_144_800 * SECOND + MINUTE // 2
"""Half past a minute in 2035: slots lie on whole minutes, everything else on the script's own grid."""
LEASE = 3 * MINUTE
LATE = 5 * MINUTE
JOBS = ("report", "Report", "mail.send", "jöb 東京 🎉", "gone")
NODES = ("a", "b", "c")
HANDLERS = frozenset({"h", "g"})
POOLS = frozenset({"default", "gpu"})
ONE_HANDLER, ONE_POOL = frozenset({"g"}), frozenset({"gpu"})
PLAIN = (Kind.LOCK, Kind.KEY, Kind.STEP, Kind.CALENDAR)

Pure = Callable[..., Change | None]


def same_as_memory(make: Callable[[], Store], *, seed: int, steps: int = 300) -> None:
    """Tell a story of so many steps to the memory store and to the one that `make` makes; they must not differ."""
    store = make()
    store.open()
    try:
        _Story(MemoryStore(), store, seed).tell(steps)
    finally:
        store.close()


class _Story:
    """Two stores, one script, one pair of dice."""

    def __init__(self, memory: Store, store: Store, seed: int) -> None:
        self.memory = memory
        self.store = store
        self.seed = seed
        self.dice = random.Random(seed)
        self.now = BEGIN
        self.sessions = 0
        self.requests = 0
        self.told: list[str] = []
        self.live: dict[str, str] = {}
        self.every: list[str] = []

    def tell(self, steps: int) -> None:
        acts = [self.define, self.define, self.claim, self.claim, self.claim, self.claim, self.end, self.end, self.end]
        acts += [self.progress, self.ask, self.ask, self.ask, self.renew, self.bury, self.sweep, self.note, self.prune]
        for i in range(steps):
            self._set_clocks(self.dice.choice((0, 0, 1, 1, 2, 7, 45)) * MINUTE)
            act = self.dice.choice(acts)
            self.told.append(f"{i}: {act.__name__} at {self.now}")
            act()
            if i % 10 == 9:
                self._compare()
        self._compare()

    # --- the acts

    def define(self) -> None:
        name = self._job()
        if self.dice.random() < 0.1:
            self._write(Kind.JOB, name, partial(registration.remove, late_for=LATE, resolve=resolve))
            return
        proposal = registration.Proposal(
            definition=self._definition(),
            source=self.dice.choice(("x", "y", None)),
            revision=self.dice.choice((None, 1)),
        )
        fleet = Peers(sets=frozenset(self.dice.sample(("x", "y"), self.dice.randint(0, 1))))
        self._write(
            Kind.JOB,
            name,
            partial(registration.propose, proposal=proposal, fleet=fleet, late_for=LATE, resolve=resolve),
        )

    def claim(self) -> None:
        node = self._node()
        by = claiming.Claimant(session=self.live[node], node=node, late_for=LATE)
        which: Which = Due(handlers=HANDLERS, pools=POOLS, limit=1000)
        if self.dice.random() < 0.2:
            which = Due(handlers=ONE_HANDLER, pools=ONE_POOL, limit=1000, exclude=frozenset({"gone"}))
        self._update(which, partial(claiming.claim, by=by, resolve=resolve), session=self.live[node])

    def end(self) -> None:
        found = self._some_hold()
        if found is None:
            return
        job, hold = found
        fence = hold.fence - (self.dice.random() < 0.1)
        outcome = self.dice.choice(
            (
                Outcome.succeeded('{"n": 1}'),
                Outcome.failed("Traceback ☂"),
                Outcome.timed_out("too long"),
                Outcome.cancelled("asked", again=self.dice.random() < 0.5),
                Outcome(status=Status.HANDED_OVER, reason="accepted by celery"),
                None,
            )
        )
        if outcome is None:
            change: Pure = partial(finishing.hand_back, reason="drain")
        else:
            change = partial(finishing.finish, outcome=outcome)
        change = partial(change, run=hold.run, fence=fence, resolve=resolve)
        self._write(Kind.JOB, job, change)
        if self.dice.random() < 0.2:
            self._write(Kind.JOB, job, change)  # the reply was lost, and the request is repeated

    def progress(self) -> None:
        found = self._some_hold()
        if found is not None:
            _, hold = found
            told = ((hold.run, hold.fence, f'{{"done": {self.dice.randint(0, 9)}}}'),)
            self._write(Kind.SESSION, hold.session, partial(session.renew, running=1, progress=told))

    def ask(self) -> None:
        job = self._job()
        match self.dice.choice(("trigger", "trigger", "cancel", "pause", "resume")):
            case "trigger":
                self.requests += self.dice.random() < 0.8
                at = self.dice.choice((None, self.now + 3 * MINUTE))
                request = f"r{self.requests}"
                self._write(
                    Kind.JOB,
                    job,
                    partial(commands.trigger, request=request, payload={"ü": [request]}, at=at, resolve=resolve),
                )
            case "cancel":
                doc = self._read(Kind.JOB, job)
                runs = (
                    [*(hold.run for hold in doc.active), *(waiting_run.run for waiting_run in doc.waiting_runs)]
                    if doc
                    else []
                )
                if runs:
                    change = partial(commands.cancel, run=self.dice.choice(runs), reason="enough", resolve=resolve)
                    self._write(Kind.JOB, job, change)
            case "pause":
                until = self.dice.choice((None, self.now + 10 * MINUTE))
                self._write(
                    Kind.JOB,
                    job,
                    partial(commands.pause, by="me", note="tea", until=until, late_for=LATE, resolve=resolve),
                )
            case "resume":
                self._write(Kind.JOB, job, partial(commands.resume, resolve=resolve))

    def renew(self) -> None:
        self._write(Kind.SESSION, self.live[self._node()], partial(session.renew, running=self.dice.randint(0, 3)))

    def bury(self) -> None:
        if self.dice.random() < 0.5:
            self._update(All(Kind.SESSION), bury_expired)
        else:
            self._write(Kind.SESSION, self.live[self._node()], partial(session.end, reason="goodbye"))

    def sweep(self) -> None:
        for dead in self.memory.read(All(Kind.SESSION)):
            assert isinstance(dead, Session)
            if dead.state is session.Life.DEAD:
                change = partial(finishing.take_over, session=dead.name, reason="its node died", resolve=resolve)
                self._update(HeldBy(dead.name), partial(change, progress=session.progress_of(dead)))
                if self.dice.random() < 0.8:
                    self._write(Kind.SESSION, dead.name, session.swept)

    def note(self) -> None:
        kind, name = self.dice.choice(PLAIN), self.dice.choice(("n", "N", "ñ"))
        holder = self.dice.choice((None, *self.live.values()))
        body = {"roll": self.dice.randint(0, 99), "text": "☂"}

        def change(doc: SmallDocument | Absent, *, now: int) -> Change | None:
            if body["roll"] == 0 or (isinstance(doc, SmallDocument) and doc.body["roll"] > 90):
                return Change(None)
            return Change(SmallDocument(kind=kind, name=name, body=body, session=holder, expires_at=now))

        self._write(kind, name, change, session=holder if self.dice.random() < 0.5 else None)

    def prune(self) -> None:
        before = self.now - self.dice.choice((0, 600, 600, 6000)) * MINUTE
        counts = [store.prune(before, 10_000) for store in (self.memory, self.store)]
        assert counts[0] == counts[1], self._tale()

    # --- the props

    def _job(self) -> str:
        return self.dice.choice(JOBS)

    def _node(self) -> str:
        """A node of that name; it begins a new session when its last one has ended."""
        node = self.dice.choice(NODES)
        known = self._read(Kind.SESSION, self.live[node]) if node in self.live else None
        if known is None or known.state is not session.Life.LIVE:
            if known is not None and self.dice.random() < 0.3:
                return node  # it does not know yet
            self.sessions += 1
            new = Session(
                name=f"s{self.sessions}", node=node, host="h", pid=self.sessions, lease=LEASE, handlers=("g", "h")
            )
            self.live[node] = new.name
            self.every.append(new.name)
            self._write(Kind.SESSION, new.name, partial(session.begin, session=new))
        return node

    def _definition(self) -> Definition:
        pick = self.dice.choice
        return Definition(
            handler=pick(("h", "g")),
            schedule=pick(
                (
                    None,
                    {"kind": "every", "period": "5m"},
                    {"kind": "cron", "expression": "*/7 * * * *", "tz": "Asia/Tokyo"},
                )
            ),
            pool=pick(("default", "gpu")),
            payload=pick((None, {"☂": 1})),
            timeout=pick((None, 30 * MINUTE)),
            retries=pick((0, 2)),
            backoff=Backoff("2m", 2, "9m", 0),  # no jitter: it would leave the grid
            on_crash=pick(("retry", "fail")),
            overlap=pick((Overlap(), Overlap("queue"), Overlap("queue-all"), Overlap("replace"), Overlap("allow", 2))),
            catch_up=pick((CatchUp(), CatchUp("skip"), CatchUp("all"), CatchUp("all", 3, 60 * MINUTE))),
            start_within=pick((None, None, 20 * MINUTE)),
            enabled=self.dice.random() < 0.9,
        )

    def _some_hold(self) -> tuple[str, Hold] | None:
        held = [
            (doc.name, hold) for doc in self.memory.read(All(Kind.JOB)) if isinstance(doc, Job) for hold in doc.active
        ]
        return self.dice.choice(held) if held else None

    def _read(self, kind: Kind, name: str) -> Any:
        found = self.memory.read(Named(kind, (name,)))
        return found[0] if found else None

    # --- telling both, and comparing

    def _set_clocks(self, pass_by: int) -> None:
        """Let time pass in the script, and set both clocks to just after it."""
        self.now += pass_by
        for store in (self.memory, self.store):
            store.shift_clock(self.now - store.clock())

    def _write(self, kind: Kind, name: str, change: Pure, *, session: str | None = None) -> None:
        self._update(Named(kind, (name,)), change, session=session)

    def _update(self, which: Which, change: Pure, *, session: str | None = None) -> None:
        def scripted(doc: Any, now: int) -> Change | None:
            assert 0 <= now - self.now < MINUTE // 2, "the clocks have left the script"
            return change(doc, now=self.now)

        applied = [store.update(which, scripted, session=session) for store in (self.memory, self.store)]
        mine, theirs = (_shown(each) for each in applied)
        assert theirs == mine, self._tale()

    def _compare(self) -> None:
        mine, theirs = (self._everything(store) for store in (self.memory, self.store))
        for what, value in mine.items():
            assert theirs[what] == value, f"{what} differs\n{self._tale()}"

    def _everything(self, store: Store) -> dict[str, Any]:
        state: dict[str, Any] = {f"all {kind}": store.read(All(kind)) for kind in Kind}
        state["log"] = store.history(Query(limit=100_000)).records
        state["tally by time"] = store.tally_by_time(self.now - 600 * MINUTE, self.now + MINUTE, 10 * MINUTE)
        state["density"] = store.density(self.now - 59 * MINUTE, self.now + MINUTE, MINUTE)
        state["names"] = {kind: store.names(kind) for kind in Kind}
        for handlers, pools in ((HANDLERS, POOLS), (ONE_HANDLER, POOLS), (HANDLERS, ONE_POOL)):
            due = Due(handlers=handlers, pools=pools, limit=1000)
            state[f"due for {sorted(handlers)} in {sorted(pools)}"] = {doc.name for doc in store.read(due)}
        state["held"] = {kind: [doc.name for doc in store.read(HeldByAny(kind))] for kind in (Kind.JOB, Kind.LOCK)}
        state["sessions"] = [doc.name for doc in store.read(RecentSessions(self.now - 10 * MINUTE))]
        state["marked"] = {mark: store.marked(mark) for mark in Mark}
        state["counts"] = store.count_jobs()
        state["due times"] = store.due_times(1000)
        state["holders"] = store.holders()
        state["blocked"] = [(aside.kind, aside.name) for aside in store.blocked()]
        for name in self.every[-6:]:
            for kind in (Kind.JOB, Kind.LOCK):
                state[f"{kind} held by {name}"] = {doc.name for doc in store.read(HeldBy(name, kind))}
        return state

    def _tale(self) -> str:
        return f"seed {self.seed}, the last of the story:\n" + "\n".join(self.told[-12:])


def _shown(applied: Applied) -> Any:
    """What an update did, without what may differ: the store's own time, the order, what a dead session asked for."""
    if not applied.alive:
        return "not alive"
    results = [(r.name, r.verdict, r.doc, r.answer) for r in applied.results]
    assert not {Verdict.CONTENDED, Verdict.UNKNOWN} & {verdict for _, verdict, _, _ in results}, (
        "no other client is there"
    )
    return sorted(results, key=lambda result: result[0]), applied.next_due
