"""The claims that the store acknowledged to this process, and how they ended, for two leases.

The store may forget them: a lagging standby is promoted, a backup is restored. The node then puts back what is recorded
here (`model/transitions/rejoin.py`). The memory belongs to the process and outlives its sessions. It does not age while
the store is unavailable or being checked.

Locks and keys that the process gave up are recorded as well, before the store is told. A store that is away, or has
lost the grant, cannot release it; the session lives on, so nothing else would ever release what comes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.job import Hold, Job
from solocron.model.transitions.finishing import Outcome
from solocron.model.transitions.giving_up import GivingUp
from solocron.model.transitions.rejoin import Remembered
from solocron.runtime import Runtime
from solocron.stores.contract import Gate

__all__ = ["KEPT", "LetGo", "Memory"]

KEPT = 200_000
"""Maximum number of ended claims that are remembered."""

Key = tuple[str, int]


@dataclass(slots=True)
class _Claim:
    job: str
    incarnation: int
    hold: Hold
    cursor: int
    nominal: str | None
    outcome: Outcome | None = None


@dataclass(slots=True)
class LetGo:
    """A lock or key that this process holds no longer, whatever the store says."""

    change: GivingUp
    age: float
    released: bool = False
    """True once the store has acknowledged the release."""
    answered: bool = False
    """True if the store has replied to a repeated release. It may have had nothing to release, and a delayed request
    may still arrive: so the release is repeated until it is acknowledged or too old."""


class Memory:
    """Written by the loops that claim and finish, read by the one that checks."""

    def __init__(self, runtime: Runtime) -> None:
        self._mutex = runtime.mutex()
        self._under_way: dict[Key, _Claim] = {}
        self._over: dict[Key, _Claim] = {}
        self._ends: deque[tuple[float, Key]] = deque()
        self._effects: dict[tuple[Kind, str], tuple[float, SmallDocument]] = {}
        """Locks, keys and steps as this process wrote them last."""
        self._given_up: dict[str, LetGo] = {}
        """By token."""
        self._age = 0.0
        """Seconds for which the namespace was open, as renewals have shown: the memory's own clock."""
        self._seen: float | None = None
        """Boot time of the last renewal, while the namespace is open."""
        self.epoch = ""
        """Epoch that this node works in: a reply to a claim of an earlier one comes too late."""

    def claimed(self, epoch: str, claims: Iterable[tuple[Job, Hold]]) -> bool:
        """Remember claims that were just acknowledged; False if they come too late, and nothing may start."""
        with self._mutex:
            if epoch != self.epoch:
                return False
            for job, hold in claims:
                self._under_way[hold.run, hold.fence] = _Claim(job.name, job.incarnation, hold, job.cursor, job.nominal)
            return True

    def ended(self, key: Key, outcome: Outcome) -> None:
        """Remember the end of a body, whether or not the store knows it yet."""
        with self._mutex:
            claim = self._under_way.pop(key, None)
            if claim is not None:
                claim.outcome = outcome
                self._over[key] = claim
                self._ends.append((self._age, key))

    def handed_back(self, key: Key) -> None:
        """Forget a claim that was given up before its body began."""
        with self._mutex:
            self._under_way.pop(key, None)

    def wrote(self, note: SmallDocument, gate: Gate | None) -> bool:
        """Remember a lock, a key or the steps of a run that the store acknowledged; False if that comes too late.

        `gate` is what the commit tested, if anything: the epoch among it.
        """
        with self._mutex:
            if gate is not None and not any(word.endswith(f" {self.epoch}") for word in gate.words):
                return False
            self._effects[note.kind, note.name] = (self._age, note)
            return True

    def removed(self, kind: Kind, name: str) -> None:
        with self._mutex:
            self._effects.pop((kind, name), None)

    def effects(self) -> dict[Kind, dict[str, SmallDocument]]:
        """Return locks, keys and steps, by kind and name."""
        with self._mutex:
            found: dict[Kind, dict[str, SmallDocument]] = {}
            for (kind, name), (_, note) in self._effects.items():
                found.setdefault(kind, {})[name] = note
            return found

    def giving_up(self, change: GivingUp) -> None:
        """Record that this process no longer holds a lock or key: from here on nothing puts it back as held."""
        with self._mutex:
            self._given_up[change.token] = LetGo(change, self._age)
            key = (change.kind, change.name)
            _, kept = self._effects.get(key, (0.0, None))
            changed = None if kept is None else change(kept, 0)
            if changed is None:
                return
            if isinstance(changed.doc, SmallDocument):
                self._effects[key] = (self._age, changed.doc)
            else:
                self._effects.pop(key)

    def gave_up(self, change: GivingUp) -> None:
        """Record that the store has acknowledged the release."""
        with self._mutex:
            if change.token in self._given_up:
                self._given_up[change.token].released = True

    def given_up(self, *, unreleased: bool = False) -> list[LetGo]:
        """Return what this process gave up, or only what the store has not acknowledged yet."""
        with self._mutex:
            return [one for one in self._given_up.values() if not (unreleased and one.released)]

    def session_lost(self, session: str) -> None:
        """Count the claims of a lost session as over, without an outcome."""
        with self._mutex:
            self._seen = None
            for key in [key for key, claim in self._under_way.items() if claim.hold.session == session]:
                self._over[key] = self._under_way.pop(key)
                self._ends.append((self._age, key))

    def grow_older(self, at: float, *, keep: float) -> None:
        """Count the time since the last renewal; drop what ended more than `keep` seconds ago.

        Only time in an open namespace counts.
        """
        with self._mutex:
            if self._seen is not None:
                self._age += max(0.0, at - self._seen)
            self._seen = at
            oldest = self._age - keep
            while self._ends and (self._ends[0][0] < oldest or len(self._ends) > KEPT):
                self._over.pop(self._ends.popleft()[1], None)
            if self._effects:
                runs = {claim.hold.run for claim in self._under_way.values()}
                held = {at: kept for at, kept in self._effects.items() if kept[0] >= oldest or _is_held(kept[1], runs)}
                self._effects = held
            if self._given_up:
                self._given_up = {
                    token: one
                    for token, one in self._given_up.items()
                    if one.age >= oldest or not (one.released or one.answered)
                }

    def stand_still(self) -> None:
        """Stop ageing: the store is unavailable, or being checked."""
        with self._mutex:
            self._seen = None

    def outcome(self, key: Key) -> Outcome | None:
        """Return the end of a claim, if it has ended and is remembered."""
        with self._mutex:
            claim = self._over.get(key)
            return None if claim is None else claim.outcome

    def knows(self, key: Key) -> bool:
        with self._mutex:
            return key in self._under_way or key in self._over

    def recall(self, epoch: str) -> dict[str, list[Remembered]]:
        """Return everything, by job. From here on replies to claims of an earlier epoch come too late."""
        with self._mutex:
            self.epoch = epoch
            found: dict[str, list[Remembered]] = {}
            for claim in (*self._over.values(), *self._under_way.values()):
                found.setdefault(claim.job, []).append(
                    Remembered(
                        job=claim.job,
                        incarnation=claim.incarnation,
                        hold=claim.hold,
                        cursor=claim.cursor,
                        nominal=claim.nominal,
                        outcome=claim.outcome,
                    )
                )
            return found


def _is_held(note: SmallDocument, runs: set[str]) -> bool:
    """Return whether this process still holds it: a lock, an open key, the steps of a run that goes on."""
    is_lock = note.kind is Kind.LOCK and note.body.get("token") is not None
    return is_lock or note.session is not None or note.name in runs
