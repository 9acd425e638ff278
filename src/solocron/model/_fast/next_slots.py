"""The next slots of a timetable, remembered for one question."""

from __future__ import annotations

from solocron.model.timetable import EMPTY, Timetable
from solocron.schedules.native import Native

__all__ = ["NextSlots"]

_Found = tuple[int | None, int | None, str | None]


class NextSlots:
    """The last answer of `after`, kept by a claimer.

    Jobs that fall due together often share the very timetable and stand at the same slot, so one answer serves a burst.
    Threads may share an instance: question and answer are replaced together.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Timetable, int, _Found] = (EMPTY, 0, (None, None, None))

    def after(self, slots: Timetable, cursor: int) -> _Found:
        """Return the first slot after the cursor, the one after that, and the local reading of the first."""
        asked, at, found = self._last
        if asked is slots and at == cursor:
            return found
        first = slots.after(cursor)
        if first is None:
            return None, None, None
        found = first, slots.after(first), slots.nominal(first)
        if isinstance(slots.schedule, Native):  # a schedule of the user's own may change its mind
            self._last = slots, cursor, found
        return found
