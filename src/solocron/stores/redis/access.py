"""Documents in Redis: the calls by which an update, or a reader, finds and replaces them."""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections.abc import Callable, Sequence

from solocron.clock import SECOND
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.model.documents.run import Record
from solocron.stores.contract import All, Blocked, Due, Gate, HeldBy, HeldByAny, Named, RecentSessions, Which
from solocron.stores.drafts import Draft
from solocron.stores.redis.caller import VOID, Caller
from solocron.stores.redis.link import UnknownHandlers
from solocron.stores.redis.records import record_of
from solocron.stores.redis.wire import Fetched, unpack
from solocron.stores.write_cache import WriteCache

__all__ = ["Access"]

log = logging.getLogger("solocron")

_RESERVED = SECOND // 4
"""How long a due document is reserved for the client that fetched it for an update, in microseconds."""
_PAGE = 500
_HANDLERS_KEPT = 7 * 86_400


class Access:
    """Fetches and commits. `notified` gets the number of each own notification, `lost` what the server forgot."""

    def __init__(
        self,
        caller: Caller,
        *,
        url: str,
        cache: WriteCache,
        notified: Callable[[int], None],
        lost: Callable[[str], None],
    ) -> None:
        self.shift = 0
        self._cache = cache
        self._caller = caller
        self._url = url
        self._notified = notified
        self._lost = lost
        self._commits = 0
        self._reservations = itertools.count(1)
        self._handlers: tuple[frozenset[str], str] = (frozenset(), "")

    # --- finding

    def pages(self, which: Which) -> list[Fetched]:
        """Fetch all documents of a selection."""
        if isinstance(which, Due):
            return [self.fetch_due(which, "", reserve=False)]
        if isinstance(which, Named | HeldByAny | RecentSessions):
            names = list(dict.fromkeys(which.names)) if isinstance(which, Named) else self.names(which)
            return [self.fetch_named(which.kind, names[i : i + _PAGE], "") for i in range(0, len(names), _PAGE)]
        if isinstance(which, HeldBy):
            return self._paged("held", which.kind, "", None, which.session)
        return self._paged("all", which.kind, which.after, which.limit)

    def fetch_due(self, which: Due, session: str, *, reserve: bool) -> Fetched:
        """Fetch due documents; with `reserve` the other clients pass them over for a moment."""
        digest = self._digest(which.handlers)
        pools = sorted(which.pools)
        name = f"{self._caller.link.client}.{next(self._reservations)}" if reserve else ""
        lasts = str(_RESERVED if reserve else 0)
        words = (str(which.limit), lasts, name, digest, str(len(pools)), *pools, *which.exclude)
        try:
            fetched = self._fetch("due", Kind.JOB, session, *words)
        except UnknownHandlers:
            self._send_handlers(which.handlers, digest)
            fetched = self._fetch("due", Kind.JOB, session, *words)
        fetched.reservation = name if fetched.rows else ""
        return fetched

    def fetch_named(self, kind: Kind, names: Sequence[str], session: str) -> Fetched:
        """Fetch the documents of these names, with an empty row where there is none."""
        return self._fetch("named", kind, session, *names)

    def fetch_page(self, which: HeldBy | HeldByAny | All | RecentSessions, session: str) -> Fetched:
        """Fetch one page of a kind."""
        assert isinstance(which, All)
        return self._fetch("all", which.kind, session, which.after, str(which.limit))

    def names(self, which: HeldBy | HeldByAny | All | RecentSessions) -> list[str]:
        """Return the names of a selection that may take more than one page, in their order."""
        if isinstance(which, HeldByAny):
            return sorted(name.decode() for name in self._caller.run("held", (which.kind,)))
        if isinstance(which, RecentSessions):
            since = "" if which.since is None else str(which.since)
            return sorted(name.decode() for name in self._caller.run("sessions", (since,)))
        if isinstance(which, HeldBy):
            found = self._caller.command("ZRANGE", self._caller.key(f"held:{which.kind}:{which.session}"), "0", "-1")
        else:
            after = f"({which.after}" if which.after else "-"
            limit = "-1" if which.limit is None else str(which.limit)
            key = self._caller.key(f"names:{which.kind}")
            found = self._caller.command("ZRANGEBYLEX", key, after, "+", "LIMIT", "0", limit)
        return [name.decode() for name in found]

    def _paged(self, mode: str, kind: Kind, after: str, left: int | None, *more: str) -> list[Fetched]:
        pages: list[Fetched] = []
        while left is None or left > 0:
            size = _PAGE if left is None else min(left, _PAGE)
            pages.append(self._fetch(mode, kind, "", after, str(size), *more))
            if not pages[-1].more:
                break
            after = pages[-1].rows[-1].name
            left = None if left is None else left - size
        return pages

    def _fetch(self, mode: str, kind: Kind, session: str, *words: str) -> Fetched:
        known = self._commits
        fetched = unpack(self._caller.run("fetch", (mode, kind, str(self.shift), session, *words)))
        self._cache.observe(fetched.now - self.shift)
        self._saw(fetched.commits, known)
        return fetched

    def _digest(self, handlers: frozenset[str]) -> str:
        known, digest = self._handlers
        if known != handlers or not digest:
            text = "\n".join(sorted(handlers))
            digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
            self._handlers = (handlers, digest)
        return digest

    def _send_handlers(self, handlers: frozenset[str], digest: str) -> None:
        """Send the set of handlers, which may be thousands: the server keeps it, and calls name its digest."""
        key = self._caller.key(f"handlers:{digest}")
        # An empty member, so that the set of no handlers exists too.
        self._caller.command("SADD", key, "", *handlers)
        self._caller.command("EXPIRE", key, str(_HANDLERS_KEPT))

    # --- replacing

    def swap(
        self,
        kind: Kind,
        drafts: Sequence[Draft],
        session: str,
        *,
        reservation: str = "",
        window: tuple[int, int] | None = None,
        gate: Gate | None = None,
    ) -> str | None:
        """Commit, and end the reservation of this name. With `window`, only if the server's own time is in it."""
        words = [session, kind, reservation, str(len(drafts))]
        words += ["", ""] if window is None else map(str, window)
        words.append("" if gate is None else "\n".join((str(gate.beats), gate.pauses, *gate.words)))
        known = self._commits
        answer = self._caller.commit(words, [draft.extra.words for draft in drafts])
        if answer is not None and answer not in (VOID, "dead", "shut"):
            _, number, commits, _, time, _, _ = answer.partition("\n")[0].split(" ")
            self._cache.observe(int(time))
            self._saw(int(commits), known)
            if number != "0":
                self._notified(int(number))
        return answer

    def records(self, members: Sequence[str]) -> tuple[Record, ...]:
        """Return the records of these names that can be read."""
        if not members:
            return ()
        texts = self._caller.command("MGET", *(self._caller.key(f"run:{member}") for member in members))
        return tuple(record_of(member, text.decode()) for member, text in zip(members, texts, strict=True) if text)

    def release(self, reservation: str) -> None:
        """End a reservation, at once if the server can be reached."""
        try:
            self._caller.command("HDEL", self._caller.key("reservations"), reservation)
        except StoreError:
            pass  # it ends by itself, in a moment

    def times_aside(self, kind: Kind, name: str) -> int:
        """Return how often in a row a document was set aside."""
        found = self._caller.command("HGET", self._caller.key("blocked"), f"{kind}:{name}")
        return int(found.split(b" ", 2)[1]) if found else 0

    def put_aside(self, aside: Blocked) -> None:
        """Keep a document out of the way until an instant."""
        reason = aside.reason.encode(errors="replace").decode()
        self._caller.run("block", (aside.kind, aside.name, str(aside.until), str(aside.times), reason))

    def _saw(self, commits: int, known: int) -> None:
        """Notice a server that has forgotten commits which it had acknowledged before this call was sent."""
        if commits >= known:
            self._commits = max(commits, self._commits)
            return
        self._commits = commits
        what = "everything" if commits == 0 else f"at least {known - commits} commits"
        said = f"the server has lost {what} of this namespace that it had acknowledged"
        log.error("the store has lost writes: %s", said, extra={"event": "store lost writes", "store": self._url})
        self._lost(said)
