"""Read the alarms of a namespace, and keep silences in its store, where every node respects them."""

from __future__ import annotations

from datetime import datetime, timedelta

from solocron.author import check_author
from solocron.client.job_documents import JobDocuments
from solocron.client.patterns import why_unmatchable
from solocron.clock import from_us, to_us
from solocron.effects.locks.writing import write
from solocron.errors import InvalidError, NotFoundError
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents import alarm_message
from solocron.model.documents.alarm import KINDS, is_open, was_open
from solocron.model.documents.alarm_message import AlarmMessage, MessagePhase
from solocron.model.documents.silence import Silence, document_of, lift, read_silences, silence, silenced_by, split
from solocron.near import did_you_mean
from solocron.stores.contract import ChangeFn
from solocron.stores.paging import iter_documents
from solocron.views import AlarmsView, AlarmView, MessageView, SilenceView

__all__ = ["AlarmDesk"]

_LONGEST = timedelta(days=90)
_NAME_LIMIT = 200
_NOTHING = "Nothing was silenced."


class AlarmDesk:
    """What is open, and what a person does not want to be told of."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store

    def open_alarms(self) -> AlarmsView:
        """Return the open alarms, what is wrong first, what was told of them, and the silences."""
        now, docs = self._store.clock(), list(iter_documents(self._store, Kind.ALARM))
        silences = [one for one in read_silences(docs) if one.until > now]
        messages = {
            kind: alarm_message.read(doc)
            for kind in KINDS
            for doc in docs
            if doc.name == alarm_message.document_of(kind)
        }
        opened = [
            _view(doc, messages.get(doc.body["kind"], AlarmMessage()), silences, now) for doc in docs if is_open(doc)
        ]
        opened.sort(key=lambda one: (not one.counts, one.state, one.since, one.kind, one.subject))
        return AlarmsView(
            alarms=tuple(opened),
            messages=tuple(_told(kind, one) for kind, one in messages.items() if one.phase is MessagePhase.RAISED),
            silences=tuple(map(_silence_view, silences)),
        )

    def closed_alarms(self) -> list[AlarmView]:
        """Return the alarms whose causes are gone, the last one first; nodes forget them after a while."""
        closed = [doc for doc in iter_documents(self._store, Kind.ALARM) if was_open(doc)]
        closed.sort(key=lambda doc: (doc.body["at"], doc.name), reverse=True)
        return [_closed(doc) for doc in closed]

    def silence(self, what: str, *, until: datetime, note: str | None = None, by: str | None = None) -> SilenceView:
        """Tell nothing of some alarms until an instant: a kind, a pattern of jobs, or `kind:pattern`."""
        self._check_what(what)
        check_author(by, note, undone="nothing was silenced")
        if not isinstance(until, datetime) or until.utcoffset() is None:
            raise InvalidError(f"until={until!r} is not an aware datetime; every silence has an end. {_NOTHING}")
        now = self._store.clock()
        if to_us(until) <= now:
            raise InvalidError(f"until={until} is in the past. {_NOTHING}")
        if until - from_us(now) > _LONGEST:
            raise InvalidError(
                f"until={until} is more than {_LONGEST.days} days ahead; silence it again then. {_NOTHING}"
            )
        made = Silence(what=what, until=to_us(until), at=now, by=by, note=note)
        self._write(what, lambda doc, at: silence(doc, made))
        return _silence_view(made)

    def lift_silence(self, what: str) -> None:
        """End a silence now; what is still wrong is told."""
        there = {one.what for one in read_silences(iter_documents(self._store, Kind.ALARM))}
        if what not in there:
            hint = did_you_mean(what, there, "`solocron alarms` lists them.")
            raise NotFoundError(f"there is no silence {what!r:.60}; {hint} Nothing was lifted.")
        self._write(what, lambda doc, at: lift(doc))

    def _write(self, what: str, change: ChangeFn) -> None:
        write(self._store, Kind.ALARM, document_of(what), change, runtime=self._documents.runtime, ward=None)

    def _check_what(self, what: str) -> None:
        """Refuse what cannot be stored, and a name that no kind, job or pool has: it would silence nothing."""
        if not isinstance(what, str) or not 0 < len(what) <= _NAME_LIMIT or not what.isprintable() or " " in what[:1]:
            raise InvalidError(
                f"{what!r:.60} cannot be silenced: give a kind, a pattern of jobs such as 'billing-*', or both as "
                f"'late:billing-*'. {_NOTHING}"
            )
        kind, pattern = split(what)
        if any(letter in pattern for letter in "*?["):
            why = why_unmatchable(pattern)
            if why is not None:
                raise InvalidError(f"no name can match {pattern!r:.60}: {why}. {_NOTHING}")
            return
        jobs = [job for job in self._documents.all() if not job.removed]
        known = {job.name for job in jobs} | {job.definition.pool for job in jobs} | {"store"}
        if pattern not in known:
            hint = did_you_mean(pattern, known | (set() if kind else set(KINDS)), "`solocron jobs` lists the jobs.")
            raise NotFoundError(f"{pattern!r} is neither a kind of alarm nor a job; {hint} {_NOTHING}")


def _view(doc: SmallDocument, message: AlarmMessage, silences: list[Silence], now: int) -> AlarmView:
    body = doc.body
    silenced = silenced_by(silences, body["kind"], body["subject"], now=now)
    told = message.phase is MessagePhase.RAISED and body["opened"] <= message.raised[-1]
    state = "told" if told else "untold"
    if body["info"]:
        state, silenced = "information", None
    elif silenced is not None:
        state = "silenced"
    return AlarmView(
        kind=body["kind"],
        subject=body["subject"],
        detail=body["detail"],
        since=from_us(body["since"]),
        state=state,
        silenced_until=None if silenced is None else from_us(silenced.until),
        owner=body["owner"],
        runbook=body["runbook"],
    )


def _closed(doc: SmallDocument) -> AlarmView:
    body = doc.body
    return AlarmView(
        kind=body["kind"],
        subject=body["subject"],
        detail=body["detail"],
        since=from_us(body["since"]),
        state="closed",
        owner=body["owner"],
        runbook=body["runbook"],
        until=from_us(body["at"]),
    )


def _told(kind: str, message: AlarmMessage) -> MessageView:
    return MessageView(
        kind=kind,
        count=message.count,
        since=from_us(message.since),
        raised_at=from_us(message.raised[-1]),
        node=message.by,
        delivery=message.delivery,
    )


def _silence_view(silence: Silence) -> SilenceView:
    return SilenceView(
        what=silence.what, until=from_us(silence.until), since=from_us(silence.at), by=silence.by, note=silence.note
    )
