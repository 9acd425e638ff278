"""Does on command what a sweeper does by itself, by the same rules, and lets set-aside documents take part again.

A session whose lease has run out is watched for a whole lease on this machine's boot clock, and buried only if it was
not renewed by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from solocron.calendars.revisions import Calendars
from solocron.clock import SECOND
from solocron.doctor.line import seconds
from solocron.doctor.sight import look
from solocron.engine.node_context import NodeContext
from solocron.engine.settings import Settings
from solocron.engine.signals import Signals
from solocron.engine.takeover import Takeover
from solocron.events import Event, Events
from solocron.jobs.registry import Registry
from solocron.lease.liveness import Liveness, Mode
from solocron.model.documents.namespace import Openness
from solocron.model.documents.session import Life, Session
from solocron.runtime import Runtime
from solocron.stores.contract import Store
from solocron.stores.paging import find_session
from solocron.version import __version__

__all__ = ["repair"]

Tell = Callable[[str], None]


def repair(store: Store, runtime: Runtime, tell: Tell | None = None) -> list[str]:
    """Return what was done, one sentence each; `tell`, if given, reports what takes time."""
    return list(_Repair(store, runtime, tell).all())


class _Repair:
    """One pass, with the node's own takeover and the rule of `lease/liveness.py` for who may be buried."""

    def __init__(self, store: Store, runtime: Runtime, tell: Tell | None) -> None:
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
        registry = Registry()
        context = NodeContext(
            store=store, runtime=runtime, settings=settings, events=events, resolve=registry.resolve,
            calendars=Calendars(store, registry), signals=Signals(runtime),
        )  # fmt: skip
        self._takeover = Takeover(context, _never)
        self._liveness = Liveness(store, runtime, settings.node)

    def all(self) -> Iterator[str]:
        sight = look(self._store)
        if sight.namespace is not None and sight.namespace.openness is not Openness.OPEN:
            yield f"repaired nothing: the namespace is {sight.namespace.openness}, since the store went back"
            return
        for one in sight.blocked:
            if self._store.unblock(one.kind, one.name):
                yield f"let {one.kind} {one.name} take part again"
        for session in sight.unswept:
            self._takeover.take_all(session)
            yield self._told(f"swept {session.node}, which was dead")
        for name in sight.unknown:
            if self._is_nobody(name):
                self._takeover.take_from(name, "its session does not exist any more")
                what = "freed the runs of" if self._taken else "found no run that is held by"
                yield self._told(f"{what} session {name}, which does not exist")
        yield from self._bury(sight.silent)

    def _bury(self, silent: tuple[Session, ...]) -> Iterator[str]:
        """All of them are watched at once, each for its own lease."""
        for session in silent:
            self._liveness.watch(session, Mode.REPAIR)
        for session in sorted(silent, key=lambda one: one.lease):
            self._watch_until(self._liveness.due(session.name) or 0.0, session)
            if not self._liveness.bury_if_over(session, Mode.REPAIR):
                yield f"left {session.node} alone: it has renewed its lease, or another node has buried it"
                continue
            self._takeover.take_all(session)
            yield self._told(f"buried {session.node}, silent for a lease and more")

    def _watch_until(self, end: float, session: Session) -> None:
        left = end - self._runtime.clock.boot()
        if left > 0 and self._tell is not None:
            self._tell(f"watching {session.node} for {seconds(round(left * SECOND))}: only silence makes it dead")
        sleeper = self._runtime.event()
        while (left := end - self._runtime.clock.boot()) > 0:
            sleeper.wait(left)

    def _is_nobody(self, name: str) -> bool:
        """Looked at once more, by itself: freeing the holds of a session that lives would run them twice."""
        session = find_session(self._store, name)
        return session is None or session.state is Life.SWEPT

    def _note(self, event: Event) -> None:
        self._taken.append(event.job)

    def _told(self, text: str) -> str:
        taken, self._taken = self._taken, []
        return f"{text}; taken over: {', '.join(taken)}" if taken else text


def _never(instant: int) -> None:
    """There is no claimer here that would plan a look."""
