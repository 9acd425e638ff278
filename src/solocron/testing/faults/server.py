"""The server itself: it restarts, is away, is killed. What it had acknowledged is there afterwards."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.run import Status
from solocron.model.documents.session import begin, bury
from solocron.stores.contract import HeldBy, Store, Verdict
from solocron.testing.conformance.kit import everything, get, job, log, patience, put, take, verdicts, write
from solocron.testing.conformance.rivals import race
from solocron.testing.faults.victim import MINE, SHORT, Victim, claim, finish

__all__ = ["Outages"]


class Outages:
    """A server that ends and comes back, and clients that end in the middle."""

    waits_in_vain: ClassVar[bool] = True
    """Whether waiting for news on a server that is away ends like any wait; False where it is an error."""

    def test_a_restart_is_not_noticed_by_callers(self, victim: Victim, near: Store) -> None:
        """Idle connections are gone; the next call makes new ones and does not say a word."""
        put(near, job("j"))
        near.wait(0.0)
        victim.restart()
        assert get(near, Kind.JOB, "j") == job("j")
        put(near, job("k"))

    def test_a_server_that_is_away_is_unavailable_and_comes_back(self, victim: Victim) -> None:
        with victim.opened(lease=SHORT) as store:
            put(store, job("j", due_at=store.clock() - SECOND))
            victim.kill()
            try:
                with pytest.raises(StoreUnavailable, match=r"nothing was written|cannot be reached"):
                    take(store, "s")
                if self.waits_in_vain:
                    assert store.wait(0.01) is False
                else:
                    with pytest.raises(StoreUnavailable):
                        store.wait(0.1)
            finally:
                victim.restart()
            assert take(store, "s") == ["j"]

    @pytest.mark.invariant("I12: what was recorded stays recorded")
    def test_kill_9_of_the_server_between_claim_and_finish_loses_nothing(self, victim: Victim, near: Store) -> None:
        put(near, *(job(f"j{i}", due_at=near.clock() - SECOND) for i in range(20)))
        applied = near.update(everything(), claim)
        assert set(verdicts(applied).values()) == {Verdict.APPLIED}
        victim.kill()
        victim.restart()
        assert len(near.read(HeldBy("s"))) == 20
        finished = near.update(HeldBy("s"), finish)
        assert set(verdicts(finished).values()) == {Verdict.APPLIED}
        victim.kill()
        victim.restart()
        assert near.read(HeldBy("s")) == ()
        assert Counter(found.status for found in log(near)) == {Status.SKIPPED: 20, Status.SUCCEEDED: 20}

    def test_an_interrupt_in_the_middle_of_a_change_keeps_nothing_from_others(self, near: Store) -> None:
        """Ctrl-C while a claim is computed: nothing is written, and its rows are free again soon."""
        put(near, job("j", due_at=near.clock() - SECOND))

        def interrupted(doc: Any, now: int) -> Change:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            near.update(everything(), interrupted)
        gc.collect()
        for _ in patience():
            if take(near, "s") == ["j"]:
                break
        assert get(near, Kind.JOB, "j").fence == 1

    @pytest.mark.invariant("I5: no slot is lost")
    def test_burying_waits_for_a_claim_that_has_seen_the_session_alive(self, victim: Victim, near: Store) -> None:
        """A claim is either before the burial, and swept, or not at all."""
        write(near, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(near, *(job(f"j{i}", due_at=near.clock() - SECOND) for i in range(30)))
        with victim.opened() as sweeper:

            def sweep() -> None:
                write(sweeper, Kind.SESSION, "s", lambda doc, now: bury(doc, now=now, reason="test"))
                sweeper.update(HeldBy("s"), lambda doc, now: Change(replace(doc, active=())))

            def claims() -> None:
                while near.update(everything(limit=1), claim, session="s").alive:
                    pass

            race([sweep, claims])
            assert sweeper.read(HeldBy("s")) == ()
            assert sweeper.holders() == frozenset()

    def test_what_a_client_writes_itself_is_no_news_to_it(self, near: Store) -> None:
        near.wait(0.0)
        put(near, job("j", due_at=1))
        assert near.wait(0.05) is False
