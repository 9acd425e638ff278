"""Does by hand what a sweeper does by itself, by the same rules, and lets set-aside documents take part again.

Nobody is buried on the store's clock alone: a session that is over is watched for a whole lease on this machine's
boot clock, and buried only if it has not changed by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from solocron.clock import SECOND
from solocron.doctor.line import seconds
from solocron.doctor.sight import look
from solocron.engine.attempts import Board
from solocron.engine.memory import Memory
from solocron.engine.recovery import Recovery
from solocron.engine.settings import Settings
from solocron.engine.sweeper import Sweeper
from solocron.events import Event, Events
from solocron.jobs.registry import Registry
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.namespace import Openness
from solocron.model.documents.session import Life, Session, bury
from solocron.runtime import Runtime
from solocron.stores.contract import Named, Store, Verdict
from solocron.version import __version__

__all__ = ["repair"]

Tell = Callable[[str], None]


def repair(store: Store, runtime: Runtime, tell: Tell = lambda text: None) -> list[str]:
    """What was done, one sentence each; `tell` hears what takes time."""
    return list(_Repair(store, runtime, tell).all())


class _Repair:
    """One pass. The sweeper is the node's own; only who may be buried is decided here, as a node would."""

    def __init__(self, store: Store, runtime: Runtime, tell: Tell) -> None:
        self._store = store
        self._runtime = runtime
        self._tell = tell
        self._taken: list[str] = []
        events = Events()
        events.on("taken over", self._note)
        settings = Settings.make(
            node="doctor", host="", pid=0, pools=("default",), lease="15s", beat=None, max_running=1, keep="1d",
            revision=None, version=__version__,
        )  # fmt: skip
        board, resolve = Board(runtime, settings), Registry().resolve
        recovery = Recovery(
            store=store, board=board, runtime=runtime, settings=settings, events=events, memory=Memory(runtime),
            resolve=resolve, changed=lambda: None, checked=lambda: None,
        )  # fmt: skip
        self._sweeper = Sweeper(
            store=store, board=board, runtime=runtime, settings=settings, events=events, resolve=resolve,
            recovery=recovery, wake_claimer=_nothing, fleet_changed=_nothing,
        )  # fmt: skip

    def all(self) -> Iterator[str]:
        sight = look(self._store)
        if sight.namespace is not None and sight.namespace.openness is not Openness.OPEN:
            yield f"repaired nothing: the namespace is {sight.namespace.openness}, since the store went back"
            return
        for one in sight.blocked:
            if self._store.unblock(one.kind, one.name):
                yield f"let {one.kind} {one.name} take part again"
        for session in sight.unswept:
            self._sweeper.take_all(session)
            yield self._told(f"swept {session.node}, which was dead")
        for name in sight.unknown:
            if self._is_nobody(name):
                self._sweeper.take_from(name, "its session does not exist any more")
                what = "freed the runs of" if self._taken else "found no run that is held by"
                yield self._told(f"{what} session {name}, which does not exist")
        yield from self._bury(sight.silent)

    def _bury(self, silent: tuple[Session, ...]) -> Iterator[str]:
        """All of them are watched at once, each for its own lease."""
        begun = self._runtime.clock.boot()
        for session in sorted(silent, key=lambda one: one.lease):
            self._watch_until(begun + session.lease / SECOND, session)
            applied = self._store.update(Named(Kind.SESSION, (session.name,)), partial(_buried, seen=session.beats))
            if applied.results[0].verdict is not Verdict.APPLIED:
                yield f"left {session.node} alone: it has renewed its lease, or another node has buried it"
                continue
            self._sweeper.take_all(session)
            yield self._told(f"buried {session.node}, silent for a lease and more")

    def _watch_until(self, end: float, session: Session) -> None:
        left = end - self._runtime.clock.boot()
        if left > 0:
            self._tell(f"watching {session.node} for {seconds(round(left * SECOND))}: only silence makes it dead")
        sleeper = self._runtime.event()
        while (left := end - self._runtime.clock.boot()) > 0:
            sleeper.wait(left)

    def _is_nobody(self, name: str) -> bool:
        """Looked at once more, by itself: freeing the holds of a session that lives would run them twice."""
        found = [doc for doc in self._store.read(Named(Kind.SESSION, (name,))) if isinstance(doc, Session)]
        return all(session.state is Life.SWEPT for session in found)

    def _note(self, event: Event) -> None:
        self._taken.append(event.job)

    def _told(self, text: str) -> str:
        taken, self._taken = self._taken, []
        return f"{text}; taken over: {', '.join(taken)}" if taken else text


def _buried(doc: Session | Absent, now: int, *, seen: int) -> Change | None:
    return bury(doc, now=now, reason="not renewed in time, buried by doctor --repair", seen=seen)


def _nothing(_: object) -> None:
    """There is no claimer to wake and no fleet of ours."""
