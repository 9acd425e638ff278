"""Give up a lock or a key: the change that its holder makes whether or not the store has the grant just then."""

from __future__ import annotations

from dataclasses import dataclass

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import key, lock

__all__ = ["GivingUp"]


@dataclass(frozen=True, slots=True)
class GivingUp:
    """Release what was acquired with `token`. It can be applied at any time, and again: it changes nothing else.

    Of a lock that is also the place in its queue. A key is free again, or uncertain if its block was cut off.
    """

    kind: Kind
    name: str
    token: str
    uncertain: bool = False

    def __call__(self, doc: SmallDocument | Absent, now: int) -> Change | None:
        if self.kind is Kind.KEY:
            return (key.doubt if self.uncertain else key.drop)(doc, token=self.token, now=now)
        return lock.release(doc, token=self.token, now=now) or lock.leave(doc, token=self.token, now=now)
