"""One `update`: fetch, compute, commit; what was lost to another client is fetched and computed again."""

from __future__ import annotations

from collections.abc import Iterator

from solocron.clock import SECOND
from solocron.errors import StoreError
from solocron.model.change import Absent, Kind
from solocron.model.documents.run import Record
from solocron.stores.contract import All, Applied, ChangeFn, Due, Gate, HeldBy, HeldByAny, Named, Result, Verdict, Which
from solocron.stores.documents import kind_of
from solocron.stores.redis.access import Access
from solocron.stores.redis.caller import VOID
from solocron.stores.redis.drafts import Draft, draft, still_selected
from solocron.stores.redis.notes import RecentSmallDocuments
from solocron.stores.redis.wire import NOTHING, Fetched, Row
from solocron.stores.write_cache import Recent

__all__ = ["Update"]

_ROUNDS = 8
"""How often an update tries again what it lost to others before it calls it contended."""
_PORTION = 250
"""Documents per commit: a few milliseconds of the server's time, in which it serves nobody else."""


_STALE = SECOND
"""How far behind our idea of the server's time may be when the end of a run is written."""


_APPLIED = Verdict.APPLIED


class _Over(Exception):
    """The rest of the update cannot be done: what is not decided stays contended."""


class Update:
    """Collects the results; of several portions each is one commit."""

    def __init__(
        self,
        access: Access,
        which: Which,
        change: ChangeFn,
        session: str | None,
        *,
        gate: Gate | None = None,
        recent: Recent,
        notes: RecentSmallDocuments,
    ) -> None:
        self._access = access
        self._recent = recent
        self._notes = notes
        self._which = which
        self._kind = kind_of(which)
        self._change = change
        self._session = session or ""
        self._gate = gate
        self._shut = False
        self._bears: tuple[str, str] | None = None
        self._results: dict[str, Result | None] = {}
        """By name; None where others have been faster so far."""
        self._told = 0
        """The server's own time when it was asked; 0 while it has told none."""
        self._next_due: int | None = None
        self._alive = True
        self._holds: bool | None = None
        self._offer = ""
        """The name of what is offered to us and not yet committed."""

    def run(self) -> Applied:
        """Everything that could be decided; raises only while it certainly has written nothing."""
        try:
            if not self._recalled():
                for fetched in self._portions():
                    self._portion(fetched)
        except _Over:
            if self._shut or not self._alive:
                self._let_go()
        except StoreError:
            if not self._written():
                raise
        except BaseException:
            self._let_go()
            raise
        if (not self._alive or self._shut) and not self._written():
            return Applied(results=(), now=self._told, alive=self._alive, shut=self._shut)
        results = tuple([result or Result(name, Verdict.CONTENDED) for name, result in self._results.items()])
        return Applied(results=results, now=self._told, next_due=self._next_due, holds=self._holds, gate=self._bears)

    def _recalled(self) -> bool:
        """Whether it could be decided at once, from the document as this client wrote it last.

        Neither that nor our idea of the time is believed: the server writes only if both are right.
        """
        found = self._notes.take(self._which) if not self._session else None
        if found is None:
            return False
        row, now, window = found
        one = draft(self._kind, row, self._change, now + self._access.shift)
        if one.error is not None or one.spelt is NOTHING:
            return False  # nothing would be compared with the store: that is no answer to anybody
        return not self._settle([one], self._access.swap(self._kind, [one], "", window=window))

    def _remembered(self, names: list[str]) -> list[str]:
        """Write from memory what this client has just claimed; returns the names that have to be fetched.

        As above, nothing is believed: the server compares each document with the one that the claim left.
        """
        left: list[str] = []
        for start in range(0, len(names), _PORTION):
            time = self._access.time()
            writes: list[Draft] = []
            for name in names[start : start + _PORTION]:
                found = None if time is None else self._recent.recall(name)
                if found is not None and time is not None and found[3]:
                    fixed, state, doc, mark = found
                    row = tuple.__new__(Row, (name, str(mark), fixed, state))
                    one = draft(self._kind, row, self._change, time + self._access.shift, known=doc)
                    if one.error is None and one.spelt is not NOTHING:
                        writes.append(one)
                        continue
                left.append(name)
            if writes and time is not None:
                answer = self._access.swap(self._kind, writes, "", window=(time, time + _STALE))
                left += self._settle(writes, answer)
        return left

    def _let_go(self) -> None:
        """Interrupted: what was offered to us is anybody's again, at once if the server can be told."""
        if self._offer:
            self._access.release(self._offer)

    def _written(self) -> bool:
        done = (Verdict.APPLIED, Verdict.UNKNOWN)
        return any(result is not None and result.verdict in done for result in self._results.values())

    def _portions(self) -> Iterator[Fetched]:
        which = self._which
        if isinstance(which, Due):
            yield self._seen(self._access.fetch_due(which, self._session, offer=True))
            return
        names = list(dict.fromkeys(which.names)) if isinstance(which, Named) else self._access.names(which)
        # Named first, so that a selection of which only a part could be done does not look complete.
        self._results = dict.fromkeys(names)
        if self._kind is Kind.JOB and not self._session and isinstance(which, Named):
            names = self._remembered(names)
            if not names and self._told:
                return
        for start in range(0, len(names), _PORTION) if names else (0,):
            yield self._seen(self._access.fetch_named(self._kind, names[start : start + _PORTION], self._session))

    def _seen(self, fetched: Fetched) -> Fetched:
        if not self._told:
            self._told, self._next_due = fetched.now, fetched.next_due
        self._alive, self._offer = fetched.live, fetched.offer or self._offer
        if not fetched.live:
            raise _Over
        return fetched

    def _portion(self, fetched: Fetched) -> None:
        self._results |= dict.fromkeys([row.name for row in fetched.rows])
        rows = self._selected(fetched) if isinstance(self._which, HeldBy | HeldByAny | All) else fetched.rows
        for _ in range(_ROUNDS):
            lost = self._commit([draft(self._kind, row, self._change, fetched.now, self._recent) for row in rows])
            if not lost:
                return
            fetched = self._seen(self._access.fetch_named(self._kind, lost, self._session))
            rows = self._selected(fetched)

    def _selected(self, fetched: Fetched) -> list[Row]:
        """The rows that belong to the selection as they are now; what has left it is not answered at all."""
        rows = [row for row in fetched.rows if still_selected(self._which, row, fetched.now)]
        for name in {row.name for row in fetched.rows} - {row.name for row in rows}:
            del self._results[name]
        return rows

    def _commit(self, drafts: list[Draft]) -> list[str]:
        """Decide these; returns the names of those that others had changed first."""
        writes: list[Draft] = []
        for one in drafts:
            if one.error is not None:
                self._block(one, one.error)
            elif one.spelt is not NOTHING:
                writes.append(one)
            else:
                self._results[one.name] = _applied(self._kind, one)
        if self._offer and not writes:
            self._access.release(self._offer)
            self._offer = ""
        lost: list[str] = []
        for start in range(0, len(writes), _PORTION):
            portion = writes[start : start + _PORTION]
            offer = self._offer if start + _PORTION >= len(writes) else ""
            lost += self._settle(portion, self._access.swap(self._kind, portion, self._session, offer, gate=self._gate))
            if offer:
                self._offer = ""
        return lost

    def _settle(self, portion: list[Draft], answer: str | None) -> list[str]:
        if answer is None:
            for one in portion:
                self._results[one.name] = Result(one.name, Verdict.UNKNOWN)
            raise _Over
        if answer == VOID:
            return [one.name for one in portion]
        if answer == "dead":
            self._alive = False
            raise _Over
        if answer == "shut":
            self._shut = True
            raise _Over
        facts, _, refusals = answer.partition("\n")
        if len(portion) == 1 and facts.startswith("a"):
            self._notes.put(self._kind, portion[0], facts)
        *_, version, time, holds, bears = facts.split(" ")
        if holds != "-":
            self._holds = holds == "1"
            gate, _, server = bears.rpartition("\t")
            self._bears = (gate.replace("\t", " "), server) if gate else None
        if not self._told:
            self._told = int(time) + self._access.shift
        lines = dict[str, list[str]]()
        for line in refusals.split("\n") if refusals else ():
            number, _, what = line.partition(" ")
            lines.setdefault(number, []).append(what)
        lost = []
        for i, (one, verdict) in enumerate(zip(portion, facts.split(" ", 1)[0], strict=True), 1):
            if verdict == "a":
                firsts = self._access.records(lines.get(f"={i}", ()))
                self._results[one.name] = _applied(self._kind, one, firsts)
                if one.state is not None and one.change is not None and self._session:  # its end asks for it again
                    self._recent.put(one.row.fixed, one.state, one.change.doc, f"{version} {one.mark}")
            elif verdict == "c":
                lost.append(one.name)
            else:
                self._block(one, lines[str(i)][0])
        return lost

    def _block(self, one: Draft, reason: str) -> None:
        self._results[one.name] = Result(one.name, Verdict.BLOCKED, error=reason)
        if one.row.version:
            self._access.set_aside(self._kind, one.name, reason)


def _applied(kind: Kind, one: Draft, duplicates: tuple[Record, ...] = ()) -> Result:
    if one.change is None:
        return Result(one.name, Verdict.DECLINED, one.doc)
    doc = one.change.doc
    return Result(
        one.name, _APPLIED, Absent(kind, one.name) if doc is None else doc, one.change.answer, duplicates=duplicates
    )
