"""One round of an update on a key store: fetch, then commits that each check what was read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.model.documents.namespace import NAME
from solocron.model.documents.run import Record
from solocron.stores.contract import Gate, Which
from solocron.stores.documents import gate_in, is_open, kind_of
from solocron.stores.drafts import Draft, Selection, Written
from solocron.stores.swap.calls import PAGE, KeyCalls
from solocron.stores.swap.key_store import EXISTS, Condition, Lost, Stale, Swapped, holds
from solocron.stores.swap.layout import NOTIFY, Stamp, document_key, live_key, quoted, record_at, unpacked
from solocron.stores.swap.lost import LostVerdict, find_out
from solocron.stores.swap.parcels import unpack_all
from solocron.stores.swap.portions import Wish, in_portions, refusal
from solocron.stores.swap.selecting import Seen, Selector

__all__ = ["SwapTransaction"]

_TRIES = 8
"""How often a portion is sent again without the drafts that were stale."""
_LEASED = (Kind.SESSION, Kind.LOCK)
"""Documents whose expiry is counted from the time of their change: a time that lags takes from the lease."""
_NAMESPACE = document_key(Kind.NAMESPACE, NAME)


class SwapTransaction:
    """Nothing is held between the fetch and the commits: every commit checks the marks of what was read."""

    def __init__(self, calls: KeyCalls, selector: Selector, *, patience: float, within: int) -> None:
        """`patience`: seconds in which the outcome of a commit is looked for whose reply was lost.

        `within`: how far behind the server's clock the time of a renewal may be, in microseconds.
        """
        self._calls = calls
        self._selector = selector
        self._patience = patience
        self._within = within
        self._sight = Seen()

    def select(self, which: Which, session: str | None) -> Selection:
        if kind_of(which) in _LEASED:
            self._calls.keys.sharpen(self._within)
        found, self._sight = self._selector.select(which, session)
        return found

    def abandon(self) -> None:
        """There is nothing to end."""

    def commit(self, drafts: Sequence[Draft], selection: Selection, session: str | None, gate: Gate | None) -> Written:
        """Commit in portions; after one that was refused or got no reply, the rest is not sent."""
        outcome = Written()
        if gate is not None and session is not None and not self._is_open(gate):
            return Written(shut=True)
        wishes: list[Wish] = []
        for draft in drafts:
            wish: Wish = draft.extra
            if wish.keys > self._calls.keys.limits.keys // 2:
                self._drop_recorded(wish)
            reason = refusal(wish, self._calls.keys.limits)
            if reason:
                outcome.refused[draft.name] = reason
            else:
                wishes.append(wish)
        self._unpack_before(drafts)
        shared: dict[str, Condition] = {}
        if session is not None:
            shared[live_key(session)] = EXISTS
        if gate is not None and self._sight.namespace is not None:
            shared[_NAMESPACE] = self._sight.namespace.mark.mark
        server = None if gate is None else self._sight.server
        committed = False
        for portion in in_portions(wishes, self._calls.keys.limits):
            if not self._commit(portion, shared, outcome, selection.now, server):
                # Written while the session lived: the next round finds what became of it.
                outcome.alive = outcome.alive or committed
                outcome.lost |= {one.name for one in wishes if not one.written and one.name not in outcome.unknown}
                break
            committed = True
        if not outcome.unknown:
            outcome.told = self._calls.now()
        self._unpack_after(wishes)
        return outcome

    def _is_open(self, gate: Gate) -> bool:
        sight = self._sight
        if sight.session is None:
            return True  # the commit will find that the session is not live
        return is_open(
            gate, sight.session.state, None if sight.namespace is None else sight.namespace.state, sight.server
        )

    def _commit(
        self, portion: list[Wish], shared: Mapping[str, Condition], outcome: Written, now: int, server: str | None
    ) -> bool:
        """Commit what is not stale of a portion; return False where the rest of the update is not to be sent."""
        single = portion[0].draft.kind is Kind.SESSION and len(portion) == 1
        look = f"held/{Kind.JOB}/{quoted(portion[0].name)}/" if single else None
        also = _NAMESPACE if single else None
        for _ in range(_TRIES):
            self._drop_repeated(portion)
            token = self._calls.token()
            checks: dict[str, Condition] = dict(shared)
            writes: dict[str, str | None] = {}
            for wish in portion:
                checks |= wish.checks()
                writes |= wish.writes(token, now - self._calls.shift)
            if any(wish.draft.wakes for wish in portion):
                writes[NOTIFY] = f"{self._calls.client} {token}"
            try:
                reply = self._calls.commit(checks, writes, look=look, also=also, server=server)
            except Lost:
                answer = find_out(self._calls, portion, token, self._patience)
                if answer.verdict is not LostVerdict.APPLIED:
                    names = {wish.name for wish in portion}
                    if answer.verdict is LostVerdict.UNKNOWN:
                        outcome.unknown |= names
                    else:
                        outcome.lost |= names
                    return False
                reply = Swapped(answer.marks)
            if isinstance(reply, Swapped):
                self._written(portion, reply, outcome, alone=single)
                return True
            if reply.moved or not self._remove_stale(portion, checks, reply, outcome):
                return False
            if not portion:
                return True
        outcome.lost |= {wish.name for wish in portion}
        return True

    def _drop_repeated(self, portion: Sequence[Wish]) -> None:
        """Keep the first of two records of one attempt in one commit."""
        first: dict[str, Record] = {}
        for wish in portion:
            for key in [key for key in wish.records if key in first]:
                if wish.records[key] != first[key]:
                    wish.duplicates.append(first[key])
                del wish.records[key]
            first |= wish.records

    def _written(self, portion: Sequence[Wish], reply: Swapped, outcome: Written, *, alone: bool) -> None:
        duplicates = dict(outcome.duplicates)
        for wish in portion:
            mark: Hashable = reply.marks.get(wish.key)
            wish.written = True
            wish.stamp = None if mark is None or wish.header is None else Stamp(mark, wish.header)
            duplicates[wish.name] = tuple(wish.duplicates)
        outcome.duplicates = duplicates
        if alone:
            outcome.holds = reply.found
            if reply.server:
                state = "" if reply.also is None else unpacked(reply.also.value)[2]
                outcome.gate = (gate_in(state) if state else "", reply.server)

    def _remove_stale(
        self, portion: list[Wish], checks: Mapping[str, Condition], reply: Stale, outcome: Written
    ) -> bool:
        """Leave out what other clients changed first; False where the session is dead or the gate has to be tested."""
        keys = reply.keys
        there = self._calls.fetch(list(checks if keys is None else keys)).items
        if keys is None:
            marks = {key: item.mark for key, item in there.items()}
            keys = frozenset(key for key, condition in checks.items() if not holds(condition, marks.get(key)))
        if any(checks.get(key) is EXISTS for key in keys):
            outcome.alive = False
            return False
        if _NAMESPACE in keys and all(wish.key != _NAMESPACE for wish in portion):
            outcome.lost |= {wish.name for wish in portion}
            return False
        for wish in list(portion):
            if wish.key in keys:
                outcome.lost.add(wish.name)
                portion.remove(wish)
                self._selector.lost_race(wish.draft.kind)
                continue
            for key in [key for key in wish.records if key in there]:
                first = record_at(key, there[key].value)
                if first != wish.records[key]:
                    wish.duplicates.append(first)
                del wish.records[key]
        return True

    # --- parcels

    def _drop_recorded(self, wish: Wish) -> None:
        """Look beforehand for records of a change that is packed: a parcel is unpacked without a word to its writer."""
        keys = list(wish.records)
        for start in range(0, len(keys), PAGE):
            there = self._calls.fetch(keys[start : start + PAGE]).items
            for key, item in there.items():
                first = record_at(key, item.value)
                if first != wish.records.pop(key):
                    wish.duplicates.append(first)

    def _unpack_before(self, drafts: Sequence[Draft]) -> None:
        """Write what earlier commits of these documents have left packed, so that a second record is noticed."""
        for draft in drafts:
            if draft.mark is not None and draft.mark.header is not None and draft.mark.header.parcel:
                unpack_all(self._calls, draft.mark.header.parcel)

    def _unpack_after(self, wishes: Sequence[Wish]) -> None:
        for wish in wishes:
            if wish.parcels and wish.written:
                try:
                    unpack_all(self._calls, wish.token)
                except StoreError:
                    pass  # readers of the log read parcels too, and the next writer of the document unpacks them
