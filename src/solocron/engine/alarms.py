"""Finds what should have run and did not, and tells of it: an outage of any size is raised once and cleared once.

The nodes take turns: at each interval one of them reads the documents. It never reads the log, and writes only when an
alarm begins or ends, or a message of a kind takes its next step. The step is written before it is told. A node that
dies in between has not told, and no other node tells in its place: it cannot know whether the message went out. The
document says that the delivery is unknown; if the trouble stays, the kind is raised again after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from solocron.clock import SECOND, from_us
from solocron.engine.attempts import Attempts
from solocron.engine.node_context import NodeContext
from solocron.lease.trust import Standing
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import alarm, alarm_message
from solocron.model.documents.alarm import KINDS, TURN, Bounds, Cause, Turn
from solocron.model.documents.alarm_causes import causes
from solocron.model.documents.alarm_message import AlarmMessage, Delivery, Finding, MessageStep, OpenAlarm
from solocron.model.documents.alarm_text import LISTED, cleared, in_order, raised
from solocron.model.documents.silence import Silence, expire, read_silences, silenced_by
from solocron.model.documents.silence import document_of as silence_document
from solocron.stores.contract import ChangeFn, Named, Verdict
from solocron.stores.paging import iter_documents, iter_jobs, read_documents, read_pauses, read_sessions
from solocron.stores.until_known import OPEN_OUTCOMES

__all__ = ["AlarmSettings", "Alarms"]

_KEPT = 3_600 * SECOND
"""Microseconds for which a closed alarm is kept: longer than any look takes."""
_BATCH = 200
"""Documents that one call of the store writes."""


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """What a scheduler looks for, and what becomes of its messages."""

    bounds: Bounds
    outcome: Callable[[str], Delivery | None]
    """Returns what became of the message of an id; None while it is being sent."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A step that this node has written, or may have: its id, and the look that it came from."""

    kind: str
    id: str
    finding: Finding


class Alarms:
    """One look per turn."""

    def __init__(self, context: NodeContext, attempts: Attempts, alarm_settings: AlarmSettings) -> None:
        self._context = context
        self._attempts = attempts
        self._bounds = alarm_settings.bounds
        self._outcome = alarm_settings.outcome
        self._unsure: list[_Written] = []
        """Steps whose reply was lost, or whose call raised: told once the document shows that they were this node's."""
        self._sent: list[_Written] = []
        """Messages that were handed to their targets, and whose delivery is to be recorded."""

    def step(self, now: float, *, ticking: bool = False) -> float:
        """Take a turn if it is due; return when to look again."""
        pause = self._bounds.every / SECOND * self._context.runtime.rng.uniform(1.0, 1.2)
        if self._attempts.draining or self._attempts.lease.standing() is not Standing.HELD:
            return now + min(pause, self._context.settings.beat)
        self._make_sure()
        self.record_deliveries()
        (result,) = self._context.store.update(
            Named(Kind.ALARM, (TURN,)),
            lambda doc, at: alarm.take_turn(doc, by=self._context.settings.node, every=self._bounds.every, now=at),
        ).results
        if result.verdict is Verdict.APPLIED:
            self.look(result.answer, ticking=ticking)
        return now + pause

    def look(self, turn: Turn, *, ticking: bool = False) -> None:
        """Compare the causes with the open alarms, and let each kind take its next step."""
        store, bounds = self._context.store, self._bounds
        if ticking and (turn.away is None or turn.away >= bounds.settle):
            # No node looks between two ticks, and a tick has just done what was due: there is nothing to wait for.
            bounds = replace(bounds, settle=0)
        seen = store.clock()
        found = causes(
            list(iter_jobs(store)), read_sessions(store), aside=self._aside(),
            tier=str(store.capabilities.tier), bounds=bounds, now=seen, pauses=read_pauses(store),
        )  # fmt: skip
        docs = {doc.name: doc for doc in iter_documents(store, Kind.ALARM)}
        silences = read_silences(docs.values())
        self._write_alarms(found, docs, seen)
        for kind in KINDS:
            finding = _finding(kind, found, docs, silences, seen=seen, watched_since=turn.watched_since)
            self._tell(kind, finding, docs.get(alarm_message.document_of(kind)), bounds)
        self._remove_old(docs, silences, seen)

    def record_deliveries(self) -> None:
        """Record what became of the messages that this node has sent."""
        for written in tuple(self._sent):
            delivery = self._outcome(written.id)
            if delivery is None:
                continue
            change = partial(_record, delivery=delivery, token=written.id)
            name = alarm_message.document_of(written.kind)
            (result,) = self._context.store.update(Named(Kind.ALARM, (name,)), change).results
            if result.verdict not in OPEN_OUTCOMES:
                self._sent.remove(written)

    def _aside(self) -> frozenset[str]:
        return frozenset(one.name for one in self._context.store.blocked() if one.kind is Kind.JOB)

    # --- alarms ----------------------------------------------------------------------------------------------------

    def _write_alarms(self, found: Mapping[str, Cause], docs: dict[str, SmallDocument], seen: int) -> None:
        """Open the alarms that there is cause for and close the others; `docs` has the new documents afterwards."""
        opening = [
            name for name, cause in found.items()
            if (doc := docs.get(name)) is None or not alarm.is_open(doc) or doc.body["info"] != cause.info
        ]  # fmt: skip
        closing = [
            name for name, doc in docs.items() if name not in found and (alarm.is_open(doc) or alarm.is_waiting(doc))
        ]
        self._update(docs, opening, lambda doc, at: alarm.open_(doc, found[doc.name], seen=seen, now=at))
        self._update(docs, closing, lambda doc, at: alarm.close(doc, seen=seen, now=at))

    def _remove_old(self, docs: dict[str, SmallDocument], silences: Sequence[Silence], seen: int) -> None:
        before = seen - _KEPT
        closed = [name for name, doc in docs.items() if alarm.forget(doc, before=before) is not None]
        self._update(docs, closed, lambda doc, at: alarm.forget(doc, before=before))
        ended = [silence_document(silence.what) for silence in silences if silence.until <= seen]
        self._update(docs, ended, lambda doc, at: expire(doc, now=seen))

    def _update(self, docs: dict[str, SmallDocument], names: Sequence[str], change: ChangeFn) -> None:
        """Write documents in batches. An open outcome is left to the next look, which finds the same causes."""
        ordered = sorted(names)
        for begin in range(0, len(ordered), _BATCH):
            applied = self._context.store.update(Named(Kind.ALARM, tuple(ordered[begin : begin + _BATCH])), change)
            for result in applied.results:
                if isinstance(result.doc, SmallDocument):
                    docs[result.name] = result.doc

    # --- messages ---------------------------------------------------------------------------------------------------

    def _tell(self, kind: str, finding: Finding, doc: SmallDocument | None, bounds: Bounds) -> None:
        """Let a kind take its next step, and tell of it if this node has written it."""
        context, name = self._context, alarm_message.document_of(kind)
        written = _Written(kind, context.runtime.rng.token(), finding)
        decide = partial(
            alarm_message.decide, finding=finding, bounds=bounds, token=written.id, by=context.settings.node
        )
        if decide(doc or Absent(Kind.ALARM, name), now=finding.seen) is None:
            return
        context.runtime.failpoint("alarm")
        self._unsure.append(written)
        (result,) = context.store.update(Named(Kind.ALARM, (name,)), lambda doc, at: decide(doc, now=at)).results
        if result.verdict is Verdict.UNKNOWN:
            return
        self._unsure.remove(written)
        if result.verdict is Verdict.APPLIED and result.answer is not None and isinstance(result.doc, SmallDocument):
            context.runtime.failpoint("alarm-written")
            self._report(written, alarm_message.read(result.doc))

    def _make_sure(self) -> None:
        """Tell of the steps of unknown outcome that turn out to be this node's."""
        if not self._unsure:
            return
        names = sorted({alarm_message.document_of(written.kind) for written in self._unsure})
        found = map(alarm_message.read, read_documents(self._context.store, Named(Kind.ALARM, tuple(names))))
        messages = {message.token: message for message in found}
        unsure, self._unsure = self._unsure, []
        for written in unsure:
            if written.id in messages:
                self._report(written, messages[written.id])

    def _report(self, written: _Written, message: AlarmMessage) -> None:
        events, node, kind = self._context.events, self._context.settings.node, written.kind
        if message.step is MessageStep.CLEARED:
            text = cleared(kind, message)
            events.emit(
                "alarm cleared", id=written.id, kind=kind, text=text, count=message.count, since=message.since,
                node=node,
            )  # fmt: skip
        else:
            again = message.step is MessageStep.AGAIN
            members = in_order(written.finding.members, again=again)
            events.emit(
                "alarm", id=written.id, kind=kind, text=raised(kind, members, again=again), count=len(members),
                since=message.since, again=again, alarms=[_shown(member) for member in members[:LISTED]], node=node,
            )  # fmt: skip
        self._sent.append(written)


def _record(doc: SmallDocument | Absent, at: int, *, delivery: Delivery, token: str) -> Change | None:
    return alarm_message.record_delivery(doc, delivery, token=token)


def _shown(member: OpenAlarm) -> Mapping[str, Any]:
    """Return an alarm as a subscriber and a webhook see it."""
    return {
        "subject": member.subject, "detail": member.detail, "since": from_us(member.since),
        "owner": member.owner, "runbook": member.runbook,
    }  # fmt: skip


def _finding(
    kind: str,
    found: Mapping[str, Cause],
    docs: Mapping[str, SmallDocument],
    silences: Sequence[Silence],
    *,
    seen: int,
    watched_since: int,
) -> Finding:
    """Return what this look has found of a kind: the alarms that are open and neither silenced nor information."""
    members: list[OpenAlarm] = []
    hidden: list[OpenAlarm] = []
    for name, cause in sorted(found.items()):
        doc = docs.get(name)
        if cause.kind != kind or cause.info or doc is None or not alarm.is_open(doc):
            continue
        one = OpenAlarm(
            subject=cause.subject,
            detail=cause.detail,
            since=doc.body["since"],
            began=doc.body["opened"] if cause.ended is None else cause.ended,
            owner=cause.owner,
            runbook=cause.runbook,
        )
        silenced = silenced_by(silences, kind, cause.subject, now=seen) is not None
        (hidden if silenced else members).append(one)
    return Finding(seen=seen, watched_since=watched_since, members=members, hidden=hidden)
