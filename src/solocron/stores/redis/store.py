"""The Redis store: it finds documents, replaces those that nobody else has, keeps the log, and tells Redis' time."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import redis.exceptions as driver

from solocron.clock import SECOND
from solocron.errors import Invalid, StoreRefused
from solocron.model.change import Kind
from solocron.model.run import Record
from solocron.stores.contract import (
    All,
    Applied,
    Blocked,
    Capabilities,
    ChangeFn,
    Check,
    Doc,
    Due,
    HeldBy,
    Named,
    Query,
    Tier,
    ToSweep,
    Which,
)
from solocron.stores.redis import settings
from solocron.stores.redis.caller import Caller
from solocron.stores.redis.drafts import Draft, kind_of, readable
from solocron.stores.redis.link import Link, UnknownHandlers
from solocron.stores.redis.listening import Bell
from solocron.stores.redis.log import Log
from solocron.stores.redis.updating import Update
from solocron.stores.redis.wire import Fetched, unpack
from solocron.stores.url import Secret, parse

__all__ = ["RedisStore"]

log = logging.getLogger("solocron.store")

SCHEMA = 1
_OFFER = SECOND // 4
"""How long a due document is offered to the client that fetched it for an update, in microseconds."""
_PAGE = 500
_HANDLERS_KEPT = 7 * 86_400
_ASIDE, _ASIDE_MOST = 10 * SECOND, 3600 * SECOND


class RedisStore:
    """One client of a namespace in Redis or Valkey."""

    def __init__(
        self, url: str | Secret, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        self._parts = parse(url)
        if not namespace or any(character in "{}\r\n" for character in namespace):
            raise Invalid("a namespace is not empty and holds no braces and no line breaks. Nothing was opened.")
        seconds = lease.total_seconds()
        # A commit and the question for its lost answer both fit into a third of the lease.
        link = Link(self._parts, timeout=min(5.0, max(seconds / 6, 0.05)))
        self._namespace = namespace
        self._link = link
        self._caller = Caller(link, f"{{solocron:{namespace}}}", lease=seconds)
        self._bell = Bell(link, self._key("ring"), self._rings)
        self._log = Log(self._caller)
        self._shift = 0
        self._facts: settings.Facts | None = None
        self._commits = 0
        self._lost_writes = ""
        self._handlers: tuple[frozenset[str], str] = (frozenset(), "")

    def __repr__(self) -> str:
        return f"<RedisStore {self.url} namespace={self._namespace}>"

    @property
    def statements(self) -> Counter[str]:
        return self._caller.statements

    @property
    def url(self) -> str:
        return self._parts.masked

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def capabilities(self) -> Capabilities:
        if self._facts is None:
            return Capabilities(tier=Tier.C, why="not opened yet, so nothing is known of it")
        return settings.capabilities(self._facts, self._link.address)

    # --- opening and looking after

    def open(self) -> None:
        first = self._facts is None
        self._facts = facts = self._ask()
        self._refuse(facts)
        self._mark()
        self._bell.open()
        found = settings.capabilities(facts, self._link.address)
        if first and found.tier is Tier.C:
            log.warning(
                "store of tier C: %s", found.why, extra={"store": self.url, "tier": found.tier, "why": found.why}
            )

    def close(self) -> None:
        self._bell.close()
        self._link.drop()

    def clock(self) -> int:
        seconds, microseconds = self._caller.command("TIME")
        return int(seconds) * SECOND + int(microseconds) + self._shift

    def checks(self) -> Sequence[Check]:
        began = time.monotonic()
        self._caller.command("PING")
        round_trip = time.monotonic() - began
        lines = list(settings.checks(self._ask(), self._link.address, round_trip=round_trip))
        if self._lost_writes:
            lines.append(
                Check("writes kept", "FAIL", self._lost_writes, "run `solocron restored`, then see durability")
            )
        return lines

    def shift_clock(self, by: int) -> None:
        self._shift += by

    def _ask(self) -> settings.Facts:
        refused = self._caller.run("rights", (self._link.client,)).decode()
        return settings.ask(self._caller.command, refused, self._may_listen())

    def _may_listen(self) -> bool:
        """Whether this user may hear the bell and ring it."""
        connection = self._link.new_connection()
        try:
            connection.send_command("PUBLISH", self._key("ring"), f"{self._link.client}. 0")
            connection.read_response()
            connection.send_command("SUBSCRIBE", self._key("ring"))
            connection.read_response()
        except driver.ResponseError:
            return False
        finally:
            connection.disconnect()
        return True

    def _refuse(self, facts: settings.Facts) -> None:
        if facts.version < settings.OLDEST:
            raise StoreRefused(f"{self.url} is {facts.name}; Redis 6.2 or Valkey is needed. Nothing was written.")
        if not facts.primary:
            raise StoreRefused(f"{self.url} is a replica; nothing was written. Name the primary in the URL.")
        if facts.refused:
            raise StoreRefused(
                f"{self.url}: the user may not use a command that is needed: {facts.refused}. Nothing was written; "
                "grant what docs/how-to/redis.md lists."
            )

    def _mark(self) -> None:
        """Say which layout the keys have; any number of clients may do so at once."""
        self._caller.command("SET", self._key("schema"), str(SCHEMA), "NX")
        found = self._caller.command("GET", self._key("schema"))
        if found != str(SCHEMA).encode():
            raise StoreRefused(
                f"{self.url}: namespace {self._namespace!r} was written by a newer Solocron (layout "
                f"{found.decode(errors='replace')[:16]!r}, this one knows {SCHEMA}). Nothing was changed; upgrade first."
            )

    # --- documents

    def update(self, which: Which, change: ChangeFn, *, session: str | None = None) -> Applied:
        return Update(self, which, change, session).run()

    def read(self, which: Which) -> tuple[Doc, ...]:
        kind = kind_of(which)
        found = (readable(kind, row) for fetched in self._read(which) for row in fetched.rows)
        return tuple(doc for doc in found if doc is not None)

    def next_due(self, handlers: frozenset[str], pools: frozenset[str]) -> int | None:
        which = Due(handlers=handlers, pools=pools, limit=0)
        return self.fetch_due(which, "", offer=False, counted_as="next_due").next_due

    def holders(self) -> frozenset[str]:
        return frozenset(name.decode() for name in self._caller.command("HKEYS", self._key("holders")))

    def _read(self, which: Which) -> list[Fetched]:
        if isinstance(which, Due):
            return [self.fetch_due(which, "", offer=False)]
        if isinstance(which, ToSweep):
            return [self.fetch_sweep("")]
        if isinstance(which, Named):
            names = list(dict.fromkeys(which.names))
            return [self.fetch_named(which.kind, names[i : i + _PAGE], "") for i in range(0, len(names), _PAGE)]
        mode, rest = ("held", (which.session,)) if isinstance(which, HeldBy) else ("all", ())
        after, left = ("", None) if isinstance(which, HeldBy) else (which.after, which.limit)
        pages: list[Fetched] = []
        while left is None or left > 0:
            size = _PAGE if left is None else min(left, _PAGE)
            pages.append(self._fetch(mode, which.kind, "", after, str(size), *rest))
            if not pages[-1].more:
                break
            after = pages[-1].rows[-1].name
            left = None if left is None else left - size
        return pages

    # --- what an update asks for

    def fetch_due(self, which: Due, session: str, *, offer: bool, counted_as: str | None = None) -> Fetched:
        """Due documents; with `offer` they are this client's to change for a moment."""
        digest = self._digest(which.handlers)
        pools = sorted(which.pools)
        words = (str(which.limit), str(_OFFER if offer else 0), digest, str(len(pools)), *pools, *which.exclude)
        try:
            return self._fetch("due", Kind.JOB, session, *words, counted_as=counted_as)
        except UnknownHandlers:
            self._tell_handlers(which.handlers, digest)
            return self._fetch("due", Kind.JOB, session, *words, counted_as=counted_as)

    def fetch_named(self, kind: Kind, names: Sequence[str], session: str) -> Fetched:
        """The documents of these names, an empty row where there is none."""
        return self._fetch("named", kind, session, *names)

    def fetch_sweep(self, session: str) -> Fetched:
        """Sessions to sweep."""
        fetched = self._fetch("sweep", Kind.SESSION, session)
        fetched.rows.sort(key=lambda row: row.name)
        return fetched

    def names(self, which: HeldBy | All) -> list[str]:
        """The names of a selection that may take more than one page."""
        if isinstance(which, HeldBy):
            found = self._caller.command("ZRANGE", self._key(f"held:{which.kind}:{which.session}"), "0", "-1")
        else:
            after = f"({which.after}" if which.after else "-"
            limit = "-1" if which.limit is None else str(which.limit)
            key = self._key(f"names:{which.kind}")
            found = self._caller.command("ZRANGEBYLEX", key, after, "+", "LIMIT", "0", limit)
        return [name.decode() for name in found]

    def swap(self, kind: Kind, drafts: Sequence[Draft], session: str, release: Sequence[str] | None) -> str | None:
        """Commit; `release` are offered documents that need no write."""
        words = [session, kind, "0" if release is None else "1", str(len(drafts))]
        for draft in drafts:
            words += draft.words or ()
        answer = self._caller.commit([*words, *(release or ())])
        if answer is not None and answer[:1] in "abc" and answer[:1]:
            _, rang, commits = answer.partition("\n")[0].split(" ")
            self._saw(int(commits))
            if rang != "0":
                self._bell.rang(int(rang))
        return answer

    def release(self, names: Sequence[str]) -> None:
        """Offered documents that were not changed are anybody's again."""
        self._caller.command("ZREM", self._key("offered"), *names)

    def set_aside(self, kind: Kind, name: str, reason: str) -> None:
        """Keep a document out of the way that fails on its own."""
        words = (kind, name, str(self._shift), str(_ASIDE), str(_ASIDE_MOST), reason.encode(errors="replace").decode())
        self._caller.run("block", words)

    def _fetch(self, mode: str, kind: Kind, session: str, *words: str, counted_as: str | None = None) -> Fetched:
        reply = self._caller.run("fetch", (mode, kind, str(self._shift), session, *words), counted_as=counted_as)
        fetched = unpack(reply)
        self._saw(fetched.commits)
        return fetched

    def _saw(self, commits: int) -> None:
        """Notice a server that has forgotten commits: it was restarted without its last writes, or emptied."""
        if commits >= self._commits:
            self._commits = commits
            return
        lost, self._commits = self._commits - commits, commits
        what = "all documents" if commits == 0 else f"at least the last {lost} commits"
        self._lost_writes = f"the server has lost {what} of this namespace while this client used it"
        log.error("the store has lost writes: %s", self._lost_writes, extra={"store": self.url, "lost": lost})

    def _digest(self, handlers: frozenset[str]) -> str:
        known, digest = self._handlers
        if known != handlers or not digest:
            text = "\n".join(sorted(handlers))
            digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
            self._handlers = (handlers, digest)
        return digest

    def _tell_handlers(self, handlers: frozenset[str], digest: str) -> None:
        """A node may have thousands of handlers: the server keeps the set, calls name its digest."""
        key = self._key(f"handlers:{digest}")
        # An empty member, so that the set of no handlers exists too.
        self._caller.command("SADD", key, "", *handlers)
        self._caller.command("EXPIRE", key, str(_HANDLERS_KEPT))

    # --- the log

    def history(self, query: Query) -> tuple[Record, ...]:
        return self._log.history(query)

    def tally(self, since: int) -> Mapping[str, int]:
        return self._log.tally(since)

    def prune(self, before: int, limit: int) -> int:
        return self._log.prune(before, limit)

    # --- documents that were set aside

    def blocked(self) -> Sequence[Blocked]:
        found = self._caller.command("HGETALL", self._key("blocked"))
        now = self.clock()
        asides = []
        for field, value in zip(found[::2], found[1::2], strict=True):
            kind, name = field.decode().split(":", 1)
            until, times, reason = value.decode().split(" ", 2)
            if int(until) > now:
                asides.append(Blocked(Kind(kind), name, int(until), reason, int(times)))
        return sorted(asides, key=lambda aside: (aside.kind, aside.name))

    def unblock(self, kind: Kind, name: str) -> bool:
        number = int(self._caller.run("unblock", (kind, name, f"{self._link.client}.")))
        return number > 0

    # --- waking up

    def signal(self) -> None:
        self._caller.run("signal", ())

    def wait(self, timeout: float) -> bool:
        return self._bell.wait(timeout)

    def _rings(self) -> int:
        return int(self._caller.command("GET", self._key("rings")) or 0)

    def _key(self, name: str) -> Any:
        return f"{self._caller.prefix}:{name}"
