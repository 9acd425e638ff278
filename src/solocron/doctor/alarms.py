"""The line about alarms: whether nodes look for them, and whether what they told has arrived."""

from __future__ import annotations

from collections.abc import Iterator

from solocron.clock import SECOND, iso
from solocron.doctor.line import ok, seconds, warn
from solocron.doctor.sight import Sight
from solocron.model.documents import alarm_message
from solocron.model.documents.alarm import KINDS, TURN, is_open
from solocron.model.documents.alarm_message import AlarmMessage, Delivery, MessagePhase
from solocron.model.documents.silence import read_silences, silenced_by
from solocron.stores.contract import Check

__all__ = ["alarms"]

_MISSED_TURNS = 10
_SENDING = 120 * SECOND
"""How long a node may take to send a message and to record that."""
_TROUBLES = {
    Delivery.REFUSED: "no target accepted the message",
    Delivery.DOUBTFUL: "a target did not reply in time",
    Delivery.UNKNOWN: "the node has not said whether the message arrived",
}


def alarms(sight: Sight) -> Iterator[Check]:
    """Report nodes that have stopped looking, and messages that may not have arrived."""
    docs = {doc.name: doc for doc in sight.alarms}
    turn = docs.get(TURN)
    if turn is None:
        yield ok("alarms", "no node looks for them; scheduler.alarms(...) does")
        return
    troubles = [
        f"{kind} was told at {iso(message.raised[-1])} by {message.by}, and {_TROUBLES[message.delivery]}"
        for kind in KINDS
        if (doc := docs.get(alarm_message.document_of(kind))) is not None
        and _is_doubtful(message := alarm_message.read(doc), sight.now)
    ]
    ago, every = sight.now - turn.body["at"], turn.body["every"]
    if sight.live and ago >= _MISSED_TURNS * every:
        told = f"no node has looked for {seconds(ago)}; it should be every {seconds(every)}"
        yield warn("alarms", told, "call scheduler.alarms(...) on every node; look for `loop error` in their logs")
    for trouble in troubles:
        yield warn("alarms", trouble, "solocron alarms; look for `not delivered` in the log of that node")
    if not troubles and not (sight.live and ago >= _MISSED_TURNS * every):
        yield ok("alarms", f"{turn.body['by']} looked {seconds(ago)} ago: {_counted(sight)}")


def _is_doubtful(message: AlarmMessage, now: int) -> bool:
    if message.phase is not MessagePhase.RAISED or message.delivery is Delivery.DONE:
        return False
    return message.delivery is not Delivery.UNKNOWN or now - message.raised[-1] > _SENDING


def _counted(sight: Sight) -> str:
    opened = [doc.body for doc in sight.alarms if is_open(doc)]
    told = [body for body in opened if not body["info"]]
    silences = read_silences(sight.alarms)
    silenced = sum(silenced_by(silences, body["kind"], body["subject"], now=sight.now) is not None for body in told)
    return f"{len(told) - silenced} open, {silenced} silenced, {len(opened) - len(told)} for information"
