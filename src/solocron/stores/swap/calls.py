"""Calls of a key store, counted, and the rows and times that are read off their replies."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

from solocron.model.change import Kind
from solocron.stores.drafts import Row
from solocron.stores.swap.key_store import Condition, Found, Item, KeyStore, Span, Stale, Swapped
from solocron.stores.swap.layout import Stamp, digest_of, document_key, fixed_key, unpacked
from solocron.stores.update import Poisoned
from solocron.stores.write_cache import WriteCache

__all__ = ["PAGE", "KeyCalls"]

PAGE = 500
"""Keys that one fetch asks for."""
_TEXTS = 2_000
"""Fixed texts that a client keeps by their digests."""
_LOOKS = 4
"""How often a document is read again whose fixed text has changed between two reads."""


class KeyCalls:
    """The calls of one client. `client` names it, and another process that it finds itself in is another client."""

    def __init__(self, keys: KeyStore, cache: WriteCache, boot: Callable[[], float]) -> None:
        self.keys = keys
        self.boot = boot
        self.cache = cache
        self.pause: Callable[[float], object] = time.sleep
        self.statements: Counter[str] = Counter()
        self.shift = 0
        self.begin()

    def begin(self) -> None:
        """Begin anew, as after a fork."""
        self.process = os.getpid()
        self.client = secrets.token_hex(6)
        self._mutex = threading.Lock()
        self._commits = 0
        self._texts: OrderedDict[str, str] = OrderedDict()

    def token(self) -> str:
        """Return a token that no other commit has."""
        with self._mutex:
            self._commits += 1
            return f"{self.client}.{self._commits}"

    def count(self, name: str) -> None:
        with self._mutex:
            self.statements[name] += 1

    # --- calls

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        """Read keys and spans in one call; a key that no server could hold poisons its document."""
        self.count("fetch")
        try:
            found = self.keys.fetch(keys, spans)
        except UnicodeEncodeError as error:
            raise Poisoned(f"a name that is not Unicode: {error.reason}") from None
        self._observe()
        return found

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        self.count("commit")
        reply = self.keys.commit(checks, writes, look=look, also=also, server=server)
        self._observe()
        return reply

    def ask_time(self) -> str:
        """Have the server tell its time; return its identity."""
        self.count("time")
        server = self.keys.ask_time()
        self._observe()
        return server

    def _observe(self) -> None:
        now = self.keys.now()
        if now:
            self.cache.observe(now)

    def now(self) -> int:
        """Return a time that the server has reached, moved by the shift of a test."""
        return self.keys.now() + self.shift

    # --- rows

    def fetch_rows(
        self, kind: Kind, names: Iterable[str], more: Sequence[str] = ()
    ) -> tuple[dict[str, Row | None], Found]:
        """Read documents by name, None for one that is not there, and further keys with the first of them."""
        wanted = list(dict.fromkeys(names))
        rows: dict[str, Row | None] = {}
        first: Found | None = None
        for start in range(0, len(wanted) or 1, PAGE):
            part = wanted[start : start + PAGE]
            found = self.fetch([*(document_key(kind, name) for name in part), *(more if first is None else ())])
            items = {name: found.items.get(document_key(kind, name)) for name in part}
            rows |= self.rows(kind, items)
            first = first or found
        assert first is not None
        return rows, first

    def rows(self, kind: Kind, items: Mapping[str, Item | None]) -> dict[str, Row | None]:
        """Return the rows of documents that were read; long fixed texts are read where they are not known."""
        rows: dict[str, Row | None] = {}
        unknown: list[str] = []
        for name, item in items.items():
            if item is None:
                rows[name] = None
                continue
            header, fixed, state = unpacked(item.value)
            if header is not None and header.digest:
                text = self._texts.get(header.digest)
                if text is None:
                    unknown.append(name)
                fixed = text or ""
            rows[name] = Row(name, Stamp(item.mark, header), fixed, state)
        if unknown:
            rows |= self._with_texts(kind, unknown)
        return rows

    def _with_texts(self, kind: Kind, names: Sequence[str]) -> dict[str, Row | None]:
        """Read documents together with their fixed texts, until each text is that of its document."""
        rows: dict[str, Row | None] = {}
        for _ in range(_LOOKS):
            found = self.fetch([key(kind, name) for name in names for key in (document_key, fixed_key)]).items
            rows, complete = {}, True
            for name in names:
                item, text = found.get(document_key(kind, name)), found.get(fixed_key(kind, name))
                if text is not None:
                    self.keep_text(text.value)
                header, fixed, state = (None, "", "") if item is None else unpacked(item.value)
                if header is not None and header.digest:
                    fixed = self._texts.get(header.digest, "")
                    complete = complete and bool(fixed)
                rows[name] = None if item is None else Row(name, Stamp(item.mark, header), fixed, state)
            if complete:
                break
        return rows  # one without its text is broken, and its own error says so

    def keep_text(self, text: str) -> None:
        """Keep a fixed text for the documents that name its digest."""
        digest = digest_of(text)
        with self._mutex:
            self._texts[digest] = text
            self._texts.move_to_end(digest)
            while len(self._texts) > _TEXTS:
                self._texts.popitem(last=False)
