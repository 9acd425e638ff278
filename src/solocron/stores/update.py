"""One `update`: rounds of select, decide and commit, until every selected document has its verdict.

A document that another client changed first is selected and decided again. A batch that the store refuses is repeated
one document at a time, and a document that fails alone is set aside while the rest goes on. A commit whose reply never
came is `unknown`, and nothing else.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from solocron.clock import SECOND
from solocron.errors import SolocronError, StoreError, StoreRefused, StoreUnavailable
from solocron.stores.contract import All, Applied, ChangeFn, Due, Gate, Named, Result, Verdict, Which
from solocron.stores.documents import kind_of
from solocron.stores.drafts import Draft, Selection, draft

if TYPE_CHECKING:
    from solocron.stores.kernel import StoreKernel

__all__ = ["Poisoned", "Retry", "UnknownOutcome", "Update", "aside_for"]

log = logging.getLogger(__name__)

_ASIDE, _ASIDE_MOST = 10 * SECOND, 3600 * SECOND
_DONE = (Verdict.APPLIED, Verdict.UNKNOWN)


class Retry(Exception):
    """The store settled a conflict against this client (deadlock, lock timeout, version): nothing was written."""


class Poisoned(Exception):
    """The store refused the data of a batch: nothing was written, and one of its documents is to blame."""


class UnknownOutcome(Exception):
    """The connection broke while committing: the batch may or may not be in the store."""


class _NotLive(Exception):
    """The session that the update is tied to is not live."""


class _Shut(Exception):
    """The gate that the update names is not open."""


def aside_for(times: int) -> int:
    """Return for how long a document is set aside that fails for the n-th time in a row, in microseconds."""
    return min(_ASIDE << min(times - 1, 16), _ASIDE_MOST)


class Update:
    """Used once."""

    def __init__(
        self, store: StoreKernel, which: Which, change: ChangeFn, session: str | None, gate: Gate | None
    ) -> None:
        self.store = store
        self.which = which
        self.kind = kind_of(which)
        self.change = change
        self.session = session
        self.gate = gate
        self.results: dict[str, Result | None] = {}
        """By name; None where other clients have been faster so far."""
        self.told = 0
        """The store's time when it was first asked; 0 while it has told none."""
        self.next_due: int | None = None
        self.holds: bool | None = None
        self.seen: tuple[str, str] | None = None
        self.asides: list[tuple[str, str]] = []
        self.last: Sequence[str] | None = None
        """The names of this portion, once it was selected as a whole."""
        # Each wait for rows may take a fifth of a lease: not eight of them in a row.
        self.until = store.boot() + store.patience
        self.todo: deque[tuple[Which, int]] = deque()

    def run(self) -> Applied:
        """Return everything that could be decided; raise only while certainly nothing was written."""
        try:
            for portion in self._portions():
                self.last = None
                self.todo.append((portion, 0))
                while self.todo:
                    which, attempt = self.todo.popleft()
                    try:
                        self._round(which, attempt)
                    except Retry as error:
                        self._again(which, attempt, error)
        except (_NotLive, _Shut) as error:
            if not self._written:
                shut = isinstance(error, _Shut)
                return Applied(results=(), now=self.told, alive=shut, shut=shut)
            # else: written while the session lived; the next call will tell
        except StoreError:
            if not self._written:
                raise
            # else: what is written is written; the rest is contended
        for name, reason in self.asides:
            self._set_aside(name, reason)
        results = tuple([result or Result(name, Verdict.CONTENDED) for name, result in self.results.items()])
        return Applied(results=results, now=self.told, next_due=self.next_due, holds=self.holds, gate=self.seen)

    @property
    def _written(self) -> bool:
        return any(result is not None and result.verdict in _DONE for result in self.results.values())

    def _portions(self) -> Iterator[Which]:
        """Split a selection into parts that the store can commit at once."""
        which, most = self.which, self.store.portion
        if most is None or isinstance(which, Due):
            yield which
        elif isinstance(which, All):
            after, left = which.after, which.limit
            while left is None or left > 0:
                size = most if left is None else min(most, left)
                yield All(which.kind, after, size)
                if self.last is None or len(self.last) < size:
                    return
                after, left = self.last[-1], None if left is None else left - size
        else:
            names = self.store.names_of(which)
            if names is None:
                yield which
                return
            # Named first, so that a selection of which only a part could be done does not look complete.
            self.results = dict.fromkeys(names)
            for start in range(0, len(self.results), most) if names else (0,):
                yield Named(self.kind, tuple(self.results)[start : start + most])

    def _round(self, which: Which, attempt: int) -> None:
        """Select, decide and commit once."""
        store = self.store
        writing: list[Draft] = []
        try:
            with store.transaction(self.kind) as transaction:
                selection = None
                if attempt == 0 and self.session is None and isinstance(which, Named):
                    selection = store.recall(which)
                recalled = selection is not None
                if selection is None:
                    selection = transaction.select(which, self.session)
                    self._found(which, selection)
                if not selection.alive:
                    transaction.abandon()
                    raise _NotLive
                drafts = self._drafts(which, selection)
                writing = [one for one in drafts if one.writes]
                if recalled and isinstance(which, Named):
                    self._read_the_rest(which, writing)
                    drafts = writing
                if not writing:
                    transaction.abandon()
                    outcome = None
                else:
                    outcome = transaction.commit(writing, selection, self.session, self.gate)
                    # Raised while the transaction is open: a connection whose commit was refused is not used again.
                    if not outcome.alive:
                        raise _NotLive
                    if outcome.shut:
                        raise _Shut
        except Poisoned as error:
            self._single_out(which, [one.name for one in writing], error)
            return
        except UnknownOutcome as error:
            for one in writing:
                self.results[one.name] = Result(one.name, Verdict.UNKNOWN, error=str(error))
            return
        if outcome is None:
            for one in drafts:
                self._decided(one.result())
            return
        self.told = self.told or outcome.told
        self.holds, self.seen = outcome.holds, outcome.gate
        lost = outcome.lost
        for one in drafts:
            if one.name in outcome.unknown:
                self._decided(Result(one.name, Verdict.UNKNOWN))
            elif one.name in outcome.refused:
                self._decided(Result(one.name, Verdict.BLOCKED, error=outcome.refused[one.name]))
            elif one.name not in lost:
                self._decided(one.result(outcome.duplicates.get(one.name, ())))
        failed = lost | outcome.refused.keys() | outcome.unknown
        store.remember([one for one in writing if one.name not in failed], outcome, self.session)
        if lost and attempt + 1 < store.rounds:
            self.todo.append((Named(self.kind, tuple(sorted(lost))), attempt + 1))

    def _found(self, which: Which, selection: Selection) -> None:
        self.told = self.told or selection.now
        if not isinstance(which, Named):
            self.last = tuple(selection.rows)
        if isinstance(which, Due):
            self.next_due = selection.next_due
        for name in selection.rows:
            self.results.setdefault(name)

    def _read_the_rest(self, which: Named, writing: Sequence[Draft]) -> None:
        """Read what was not recalled, or would not be written: what is remembered is compared with nothing there."""
        names = {one.name for one in writing}
        self.results |= dict.fromkeys(name for name in which.names if name not in self.results)
        rest = tuple(name for name in which.names if name not in names)
        if rest:
            self.todo.append((Named(which.kind, rest), 1))

    def _drafts(self, which: Which, selection: Selection) -> list[Draft]:
        """Draft each document; one that has left the selection since is neither passed to the change nor reported."""
        store, drafts = self.store, []
        still = self.which if isinstance(which, Named) and not isinstance(self.which, Named) else None
        for name, row in selection.rows.items():
            one = draft(
                self.kind, name, row, self.change, selection.now,
                which=still, read=store.document, prepare=store.prepare, own=store.own_errors,
            )  # fmt: skip
            if one is None:
                self.results.pop(name, None)
            else:
                drafts.append(one)
        return drafts

    def _decided(self, result: Result) -> None:
        self.results[result.name] = result
        if result.verdict is Verdict.BLOCKED:
            self.asides.append((result.name, result.error or "unknown"))

    def _again(self, which: Which, attempt: int, error: Exception) -> None:
        if attempt + 1 < self.store.rounds and self.store.boot() < self.until:
            self.todo.append((which, attempt + 1))
        elif isinstance(which, Named):
            for name in which.names:
                self.results.setdefault(name, None)
        elif self.last is None:
            # An empty answer would say that nothing is there, and a sweep would believe it.
            raise StoreUnavailable(f"{error}; nothing was written. It is worth trying again.")

    def _single_out(self, which: Which, names: Sequence[str], error: Poisoned) -> None:
        """Repeat a refused batch one document at a time; one that fails alone is set aside."""
        if not names and isinstance(which, Named):
            names = which.names  # refused before anything was read: a name that the store cannot even look for
        if len(names) > 1:
            self.todo.extend((Named(self.kind, (name,)), 1) for name in names)
        elif names:
            self._decided(Result(names[0], Verdict.BLOCKED, error=str(error)))
        else:
            raise StoreRefused(f"{self.store.url} refused a selection ({error}); nothing was written.")

    def _set_aside(self, name: str, reason: str) -> None:
        try:
            self.store.fails_again(self.kind, name, reason)
        except SolocronError:
            # It stays due and is met again; the verdict has been reported either way.
            log.warning("document not set aside", extra={"kind": self.kind, "document": name, "reason": reason})
