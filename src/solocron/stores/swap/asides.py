"""Documents that are set aside: a key with the reason, and the header that keeps them out of what is due until then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.stores.contract import Blocked
from solocron.stores.swap.calls import KeyCalls
from solocron.stores.swap.key_store import Condition, Lost, Span, Swapped
from solocron.stores.swap.layout import aside_key, aside_value, blocked_in, changed, document_key, packed, unpacked
from solocron.stores.swap.selecting import pages_of

__all__ = ["Asides"]

_TRIES = 8


class Asides:
    """The documents of one namespace that are set aside."""

    def __init__(self, calls: KeyCalls) -> None:
        self._calls = calls

    def all(self) -> Iterable[Blocked]:
        """Return every document that is set aside, also those whose time is over."""
        return [
            blocked_in(item.key, item.value) for page in pages_of(self._calls, Span.below("aside/")) for item in page
        ]

    def names(self, kind: Kind) -> list[str]:
        prefix = f"aside/{kind}/"
        pages = pages_of(self._calls, Span.below(prefix, bare=True))
        return [item.key.removeprefix(prefix) for page in pages for item in page]

    def times(self, kind: Kind, name: str) -> int:
        """Return how often in a row a document was set aside."""
        key = aside_key(kind, name)
        item = self._calls.fetch([key]).items.get(key)
        return 0 if item is None else blocked_in(key, item.value).times

    def put(self, aside: Blocked) -> None:
        """Set a document aside; one that is gone stays so."""
        self._write(aside.kind, aside.name, aside.until, aside_value(aside))

    def let_in(self, kind: Kind, name: str) -> bool:
        """End the setting aside of a document; return whether it was."""
        key = aside_key(kind, name)
        if key not in self._calls.fetch([key]).items:
            return False
        return self._write(kind, name, 0, None)

    def _write(self, kind: Kind, name: str, until: int, value: str | None) -> bool:
        """Write the key, and header and index of the document with it; the texts stay as they are."""
        key = document_key(kind, name)
        for _ in range(_TRIES):
            item = self._calls.fetch([key]).items.get(key)
            if item is None:
                return False
            checks: dict[str, Condition] = {key: item.mark}
            writes: dict[str, str | None] = {aside_key(kind, name): value}
            header, fixed, state = unpacked(item.value)
            if header is not None:
                new = replace(header, aside=until)
                writes |= changed(header.index(kind, name), new.index(kind, name))
                writes[key] = packed(new, fixed, state)
            try:
                if isinstance(self._calls.commit(checks, writes), Swapped):
                    return True
            except Lost as error:
                raise StoreUnavailable(f"no reply while {kind} {name!r} was set aside ({error})") from None
        raise StoreUnavailable(f"{kind} {name!r} changes all the time: it was not set aside. It is worth trying again.")
