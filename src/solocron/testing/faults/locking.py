"""Stores that lock what they select: rows that others hold, clients that freeze with rows in hand, conflicts."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreError, StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.stores.contract import All, HeldBy, Named, Store, Verdict
from solocron.testing.conformance.kit import everything, get, hold, job, log, note, patience, put, take, verdicts, write
from solocron.testing.faults.victim import SHORT, Victim, claim, finish

__all__ = ["Locking", "LockingVictim"]


class LockingVictim(Victim):
    """A server whose rows can be locked from outside."""

    conflicts: ClassVar[tuple[str, ...]]
    """Names of the conflicts that the server settles against one of two, each for `conflicting`."""

    @abstractmethod
    def locked(self, what: Kind) -> AbstractContextManager[None]:
        """Hold the rows of all jobs, or of all small documents, in a transaction of the application's own."""

    @abstractmethod
    def waiting(self) -> int:
        """Return how many transactions wait for a lock at this moment."""

    @abstractmethod
    def conflicting(self, conflict: str) -> AbstractContextManager[None]:
        """Let the server settle the next two statements of a client against it, as in a conflict of that name."""


class Locking:
    """Faults between clients of a store that locks."""

    frees_within: ClassVar[float] = 2.0
    """Seconds after which the rows of a frozen client are free, with a lease of two seconds."""

    def test_a_frozen_client_holds_its_rows_no_longer_than_a_fifth_of_the_lease(
        self, victim: LockingVictim, near: Store
    ) -> None:
        put(near, job("j", due_at=near.clock() - SECOND))
        with victim.opened(lease=SHORT) as frozen:
            thawed, selected = threading.Event(), threading.Event()
            found: list[Any] = []

            def stuck(doc: Any, now: int) -> Change | None:
                selected.set()
                thawed.wait(30)
                return claim(doc, now)

            def freeze() -> None:
                try:
                    found.append(verdicts(frozen.update(everything(), stuck)))
                except StoreError as error:
                    found.append(error)

            thread = threading.Thread(target=freeze)
            thread.start()
            selected.wait(30)
            assert take(near, "t") == []  # due jobs that are locked are passed over
            before = time.monotonic()
            assert take(near, "t", Named(Kind.JOB, ("j",))) == ["j"]  # named ones are waited for
            assert time.monotonic() - before < self.frees_within
            thawed.set()
            thread.join()
        assert found == [{"j": Verdict.UNKNOWN}] or isinstance(found[0], StoreUnavailable)
        assert [each.session for each in get(near, Kind.JOB, "j").active] == ["t"]

    def test_the_clock_is_read_after_the_locks_are_held(self, victim: LockingVictim, near: Store) -> None:
        """A time from before the wait could be older than what the other transaction has written."""
        put(near, note(Kind.LOCK, "n"))
        times: list[int] = []

        def look(doc: Any, now: int) -> None:
            times.append(now)

        thread = threading.Thread(target=lambda: write(near, Kind.LOCK, "n", look))
        with victim.locked(Kind.LOCK):
            thread.start()
            for _ in patience():
                if victim.waiting() == 1:
                    break
            with victim.opened() as other:
                released = other.clock()
        thread.join()
        assert times[0] >= released

    def test_rows_that_stay_locked_are_contended_and_a_sweep_is_not_told_that_there_is_nothing(
        self, victim: LockingVictim, near: Store
    ) -> None:
        put(near, job("j", active=(hold("r", "s"),)))
        with victim.opened(lease=timedelta(seconds=1)) as hasty, victim.locked(Kind.JOB):
            before = time.monotonic()
            assert verdicts(write(hasty, Kind.JOB, "j", finish)) == {"j": Verdict.CONTENDED}
            assert time.monotonic() - before < 10
            with pytest.raises(StoreUnavailable, match="rows stayed locked"):
                hasty.update(HeldBy("s"), finish)

    def test_a_conflict_that_the_server_settles_against_a_client_is_tried_again(
        self, victim: LockingVictim, near: Store
    ) -> None:
        """Carried out or not, the statement is repeated: the document is written once, and so is its record."""
        assert victim.conflicts, "name the conflicts of your server"
        for number, conflict in enumerate(victim.conflicts):
            names = [f"{number}-{i}" for i in range(3)]
            put(near, *(job(name, due_at=near.clock() - SECOND) for name in names))
            with victim.conflicting(conflict):
                near.update(everything(), claim)
            near.update(everything(), claim)
            assert [get(near, Kind.JOB, name).fence for name in names] == [1, 1, 1], conflict
            near.update(All(Kind.JOB), finish)
        assert len(log(near)) == 2 * 3 * len(victim.conflicts)  # a slot that was skipped, and one that ran
