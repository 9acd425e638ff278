"""What lets a renewal be one statement: the row as we wrote it last, and a time that the server has surely reached.

Neither is believed: the statement writes only if the row has that version and, on a server, if its clock agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solocron.clock import MILLISECOND
from solocron.model.change import Kind
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import Named, Which
from solocron.stores.server_time import surely_reached
from solocron.stores.sql.drafts import Draft, Row
from solocron.stores.sql.types import Outcome

__all__ = ["Renewals"]

_MOST = 16


class Renewals:
    """The sessions that one client renews, and what it knows of the server's time."""

    def __init__(self, boot: Callable[[], float], lease: int) -> None:
        self.window = lease // 50
        """How far behind a renewal's idea of the time may be: a small part of the margin of trust."""
        self._boot = boot
        self._rows: dict[str, Row] = {}
        self._heard: tuple[int, float] | None = None

    def row(self, which: Which, session: str | None) -> Row | None:
        """The row of a session as we wrote it last, if that is all that is selected."""
        if session is not None or not isinstance(which, Named) or which.kind is not Kind.SESSION:
            return None
        return self._rows.get(which.names[0]) if len(which.names) == 1 else None

    def remember(self, drafts: Sequence[Draft], outcome: Outcome) -> None:
        """Keep a session that was just renewed; forget those that were written in any other way."""
        if drafts[0].kind is not Kind.SESSION:
            return
        for one in drafts:
            self._rows.pop(one.name, None)
        new = one.change.doc if one.change else None
        if len(drafts) > 1 or outcome.lost or not isinstance(new, Session) or new.state is not Life.LIVE:
            return
        if one.version is not None and len(self._rows) < _MOST:
            self._rows[one.name] = (one.name, one.version + 1, one.fixed or one.fixed_before, one.state)

    def forget(self) -> None:
        """Another process goes on with the sessions."""
        self._rows = {}

    def heard(self, server: int) -> None:
        """The server has just said what time it is."""
        self._heard = (server, self._boot())

    @property
    def time(self) -> int | None:
        """A time that the server's clock has surely reached; None if it has never told us one.

        Two milliseconds behind that, but never behind what it told.
        """
        if self._heard is None:
            return None
        told, boot = self._heard
        return max(told, surely_reached(told, self._boot() - boot) - 2 * MILLISECOND)
