"""One round of an update on Redis: fetch, with a reservation of what is due, and a commit by script."""

from __future__ import annotations

from collections.abc import Sequence

from solocron.model.documents.run import Record
from solocron.stores.contract import Due, Gate, Named, Which
from solocron.stores.drafts import Draft, Selection, Written
from solocron.stores.redis.access import Access
from solocron.stores.redis.caller import VOID

__all__ = ["RedisTransaction"]

PORTION = 250
"""Documents per commit: a few milliseconds of the server's time, in which it serves no other client."""


class RedisTransaction:
    """Nothing is locked: due documents are reserved for a moment, and every commit compares marks."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._reservation = ""

    def select(self, which: Which, session: str | None) -> Selection:
        if isinstance(which, Due):
            fetched = self._access.fetch_due(which, session or "", reserve=True)
            self._reservation = fetched.reservation
        elif isinstance(which, Named):
            fetched = self._access.fetch_named(which.kind, which.names, session or "")
        else:
            fetched = self._access.fetch_page(which, session or "")
        rows = {row.name: row if row.mark else None for row in fetched.rows}
        return Selection(rows, fetched.now, fetched.live, fetched.next_due)

    def commit(self, drafts: Sequence[Draft], selection: Selection, session: str | None, gate: Gate | None) -> Written:
        """Commit in portions; after one that was refused or got no reply, the rest is not sent."""
        outcome = Written()
        for start in range(0, len(drafts), PORTION):
            portion = drafts[start : start + PORTION]
            last = start + PORTION >= len(drafts)
            reservation, self._reservation = (self._reservation, "") if last else ("", self._reservation)
            window = None
            if selection.latest is not None:
                window = (selection.now - self._access.shift, selection.latest - self._access.shift)
            answer = self._access.swap(
                portion[0].kind, portion, session or "", reservation=reservation, window=window, gate=gate
            )
            if not self._understand(answer, portion, outcome):
                self._reservation = reservation  # the script has not ended it
                if not start:
                    return outcome
                # Written while the session lived: the next round finds what became of it.
                outcome.alive, outcome.shut = True, False
                outcome.lost |= {one.name for one in drafts[start:] if one.name not in outcome.unknown}
                return outcome
        return outcome

    def abandon(self) -> None:
        """Release what was reserved and not changed, at once if the server can be reached."""
        if self._reservation:
            self._access.release(self._reservation)
            self._reservation = ""

    def _understand(self, answer: str | None, portion: Sequence[Draft], outcome: Written) -> bool:
        """Read the reply of a commit; False where nothing of it was written, or that is not known."""
        if answer is None:
            outcome.unknown |= {one.name for one in portion}
            return False
        if answer == "dead" or answer == "shut":
            outcome.alive, outcome.shut = answer != "dead", answer == "shut"
            return False
        if answer == VOID:
            outcome.lost |= {one.name for one in portion}
            return True
        facts, _, refusals = answer.partition("\n")
        verdicts, _, _, version, time, holds, bears = facts.split(" ")
        outcome.told = int(time) + self._access.shift
        outcome.mark = version
        if holds != "-":
            gate, _, server = bears.rpartition("\t")
            outcome.holds, outcome.gate = holds == "1", (gate.replace("\t", " "), server) if gate else None
        lines: dict[str, list[str]] = {}
        for line in refusals.split("\n") if refusals else ():
            number, _, what = line.partition(" ")
            lines.setdefault(number, []).append(what)
        duplicates: dict[str, tuple[Record, ...]] = dict(outcome.duplicates)
        for i, (one, verdict) in enumerate(zip(portion, verdicts, strict=True), 1):
            if verdict == "c":
                outcome.lost.add(one.name)
            elif verdict == "b":
                outcome.refused[one.name] = lines[str(i)][0]
            elif f"={i}" in lines:
                duplicates[one.name] = self._access.records(lines[f"={i}"])
        outcome.duplicates = duplicates
        return True
