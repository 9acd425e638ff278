"""Applications: a job runs only the function of the application that declared it (I26).

Handlers are found by name, and two applications that share a store may use one name for two functions. So a definition
names its application, a session names the applications of its handlers, and a claim compares the two. If the
application of a job is gone, the next application that declares the job takes it on: a renamed application looks like
that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from solocron.model.change import Absent, Change
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job
from solocron.model.documents.session import FEATURES, OFFERS, Life, Session

__all__ = [
    *("CalledCode", "Peers", "TakenOn", "advertised", "application_in", "can_run", "is_anothers", "needed"),
    *("rivals", "take_on"),
]

_Declared = tuple[tuple[str, ...] | None, tuple[tuple[str, tuple[str, ...] | None], ...]]
"""The handlers and the applications of a session."""


@dataclass(frozen=True, slots=True)
class TakenOn:
    """Answer of a change that moves a job from an application that is gone to another one."""

    before: str


def is_anothers(definition: Definition, ours: str | None) -> bool:
    """Return whether a job calls a function of another application than `ours`. Unknown on either side: False."""
    return definition.application is not None and ours is not None and definition.application != ours


# --- what sessions advertise -----------------------------------------------------------------------------------------


def advertised(handlers: Mapping[str, str], *, most: int) -> _Declared:
    """Return the handlers and applications that a session lists.

    `handlers` maps each handler to its application. Beyond `most` handlers, only the applications are listed.
    """
    of: dict[str, list[str]] = {}
    for handler, application in sorted(handlers.items()):
        of.setdefault(application, []).append(handler)
    if len(handlers) > most:
        return None, tuple((application, None) for application in sorted(of))
    main = max(sorted(of), key=lambda application: len(of[application]), default=None)
    applications = ((application, None if application == main else tuple(of[application])) for application in of)
    return tuple(sorted(handlers)), tuple(sorted(applications, key=lambda one: one[0]))


def application_in(session: Session, handler: str) -> str | None:
    """Return the application of one of a session's handlers; None if it has no such handler or does not say."""
    if session.handlers is None or handler not in session.handlers:
        return None
    main = None
    for application, names in session.applications:
        if names is None:
            main = application
        elif handler in names:
            return application
    return main


def needed(definition: Definition) -> frozenset[str]:
    """Return the features that a node must know to leave the runs of a job to the nodes that can run them."""
    return frozenset() if definition.hand_over is None else frozenset({OFFERS})


class CalledCode(Protocol):
    """What of a definition decides which nodes can run it."""

    @property
    def pool(self) -> str: ...
    @property
    def handler(self) -> str: ...
    @property
    def application(self) -> str | None: ...


def can_run(session: Session, code: CalledCode) -> bool:
    """Return whether a node of this session may claim a job that calls this code."""
    if code.pool not in session.pools:
        return False
    return _may_have((session.handlers, session.applications), code.handler, code.application)


def _may_have(declared: _Declared, handler: str, application: str | None) -> bool:
    handlers, applications = declared
    if handlers is not None and handler not in handlers:
        return False
    if application is None or not applications:
        return True
    named = [one for one, names in applications if names is not None and handler in names]
    return application in (named or [one for one, names in applications if names is None])


def rivals(definition: Definition, live: Iterable[Session]) -> dict[str, list[str]]:
    """Return the nodes that have a job's handler from another application than the job's, by application."""
    found: dict[str, list[str]] = {}
    for session in live:
        theirs = application_in(session, definition.handler)
        if theirs is not None and is_anothers(definition, theirs):
            found.setdefault(theirs, []).append(session.node)
    return {application: sorted(found[application]) for application in sorted(found)}


# --- what a node knows of the others ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Advertisements of the other nodes, as far as they decide which node may write a definition.

    Two equal values mean that nothing has changed.
    """

    sets: frozenset[str] = frozenset()
    """The sets of definitions that live nodes have."""
    declared: frozenset[_Declared] = frozenset()
    revision: int = 0
    """The highest revision of a live node."""
    lacking: frozenset[str] = frozenset()
    """The features that some live node does not know."""

    @classmethod
    def seen(cls, sessions: Iterable[Session], *, besides: str | None, now: int) -> Peers:
        """Return what the sessions other than `besides` advertise.

        The applications of a session that ended less than a lease ago still count: an application that restarts does
        not lose its jobs to another one.
        """
        known = [session for session in sessions if session.pools]
        own = [session for session in known if session.name == besides]
        others = [session for session in known if session.name != besides]
        live = [session for session in others if session.state is Life.LIVE]
        recent = [s for s in others if s.ended_at is not None and s.ended_at + s.lease > now]
        return cls(
            sets=frozenset(s.fingerprint for s in live) - {s.fingerprint for s in own},
            declared=frozenset((s.handlers, s.applications) for s in (*live, *recent) if s.applications)
            - {(s.handlers, s.applications) for s in own},
            revision=max((s.revision or 0 for s in (*live, *own)), default=0),
            lacking=frozenset(feature for feature in FEATURES for s in live if feature not in s.features),
        )

    def can_read(self, definition: Definition) -> bool:
        """Return whether every live node knows what a definition asks for."""
        return needed(definition).isdisjoint(self.lacking)

    def declares(self, handler: str, application: str | None) -> bool:
        """Return whether another node has this handler from this application."""
        return any(_may_have(one, handler, application) for one in self.declared)


def take_on(doc: Job | Absent, *, application: str | None, fleet: Peers) -> Change | None:
    """Let a job that was added as data call our function, if its own application is gone."""
    if isinstance(doc, Absent) or doc.removed or not is_anothers(doc.definition, application):
        return None
    before = doc.definition.application
    if fleet.declares(doc.definition.handler, before):
        return None
    return Change(
        replace(doc, definition=replace(doc.definition, application=application)), answer=TakenOn(str(before))
    )
