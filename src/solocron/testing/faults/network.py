"""The network to the server: lost requests, lost replies, silence, cuts. A verdict is never guessed."""

from __future__ import annotations

import time
from typing import ClassVar

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.session import begin, renew
from solocron.stores.contract import All, HeldBy, Store, Verdict
from solocron.testing.conformance.kit import everything, get, job, log, note, patience, put, take, verdicts, write
from solocron.testing.faults.victim import MINE, SHORT, Victim, claim
from solocron.testing.proxy import ChaosProxy

__all__ = ["NetworkFaults"]


class NetworkFaults:
    """Messages that do not arrive."""

    lost_reply: ClassVar[Verdict] = Verdict.UNKNOWN
    """The verdict on a commit whose reply was lost: APPLIED where the store asks again and learns what became of it."""
    lost_request: ClassVar[Verdict] = Verdict.UNKNOWN
    """The verdict on a commit that never arrived: APPLIED where the store calls it off and makes it again."""
    gives_up_within: ClassVar[float] = SHORT.total_seconds() / 3 + 0.5
    """Seconds after which a call on a silent server is given up, with a lease of two seconds."""

    @pytest.mark.invariant("I13: a repeated request has no second effect")
    def test_a_reply_lost_after_the_commit_is_never_guessed(
        self, victim: Victim, near: Store, proxy: ChaosProxy
    ) -> None:
        """Written once, and the session finds what it holds by asking: no lease is lost for it."""
        put(near, *(job(name, due_at=near.clock() - SECOND) for name in "jk"))
        with victim.opened(proxy.through(victim.url)) as far:
            with victim.hurt_at_commit(lambda: proxy.cut_after(0, "replies"), claim) as change:
                applied = far.update(everything(), change)
            assert verdicts(applied) == dict.fromkeys("jk", self.lost_reply)
            told = None if self.lost_reply is Verdict.UNKNOWN else "mine"
            assert {result.answer for result in applied.results} == {told}
            proxy.heal()
            assert {doc.name for doc in far.read(HeldBy("s"))} == {"j", "k"}
        assert get(near, Kind.JOB, "j").fence == get(near, Kind.JOB, "k").fence == 1
        assert sorted(found.run for found in log(near)) == ["j@0", "k@0"]

    @pytest.mark.invariant("I13: a repeated request has no second effect")
    def test_a_request_that_never_arrived_wrote_nothing_or_was_made_again(
        self, victim: Victim, near: Store, proxy: ChaosProxy
    ) -> None:
        put(near, job("j", due_at=near.clock() - SECOND))
        with victim.opened(proxy.through(victim.url)) as far:
            with victim.hurt_at_commit(lambda: proxy.cut_after(0, "requests"), claim) as change:
                applied = far.update(everything(), change)
            assert verdicts(applied) == {"j": self.lost_request}
            proxy.heal()
            if self.lost_request is Verdict.UNKNOWN:
                assert far.read(HeldBy("s")) == ()
                _take_in_time(far)
        assert get(near, Kind.JOB, "j").fence == 1

    def test_a_server_that_falls_silent_is_given_up_before_a_third_of_the_lease(
        self, victim: Victim, near: Store, proxy: ChaosProxy
    ) -> None:
        """It must not say yes, and it must not say no; a node that waited longer would lose its lease."""
        put(near, job("j", due_at=near.clock() - SECOND))
        with victim.opened(proxy.through(victim.url), lease=SHORT) as far:
            before = time.monotonic()
            with victim.hurt_at_commit(proxy.blackhole, claim) as change:
                applied = far.update(everything(), change)
            assert time.monotonic() - before < self.gives_up_within
            assert verdicts(applied) == {"j": Verdict.UNKNOWN}
            with pytest.raises(StoreUnavailable):
                far.read(All(Kind.JOB))
            proxy.heal()
            assert [doc.name for doc in far.read(All(Kind.JOB))] == ["j"]

    def test_a_lost_reply_to_a_renewal_costs_no_session(self, victim: Victim, near: Store, proxy: ChaosProxy) -> None:
        def beat(store: Store) -> tuple[Verdict, bool]:
            applied = write(store, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now))
            return verdicts(applied)["s"], applied.now == 0

        with victim.opened(proxy.through(victim.url)) as far:
            write(far, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
            beat(far)
            proxy.cut_after(0, "replies")
            unknown = self.lost_reply is Verdict.UNKNOWN
            assert beat(far) == (self.lost_reply, unknown), "no time is told that was not heard"
            proxy.heal()
            assert beat(far) == (Verdict.APPLIED, False)
        assert get(near, Kind.SESSION, "s").state == "live"

    def test_a_reply_that_comes_too_late_is_not_the_answer_to_the_next_question(
        self, victim: Victim, near: Store, proxy: ChaosProxy
    ) -> None:
        """The connection of a call that was given up is never used again."""
        put(near, note(Kind.KEY, "first", {"mine": 1}), note(Kind.KEY, "second", {"mine": 2}))
        with victim.opened(proxy.through(victim.url), lease=SHORT) as far:
            assert get(far, Kind.KEY, "first").body == {"mine": 1}
            proxy.delay(self.gives_up_within)
            with pytest.raises(StoreUnavailable):
                get(far, Kind.KEY, "first")
            proxy.delay(0)
            for _ in range(3):
                assert get(far, Kind.KEY, "second").body == {"mine": 2}
                assert get(far, Kind.KEY, "first").body == {"mine": 1}

    def test_a_cut_before_anything_was_sent_wrote_nothing_or_was_made_again(
        self, victim: Victim, near: Store, proxy: ChaosProxy
    ) -> None:
        put(near, job("j", due_at=near.clock() - SECOND))
        with victim.opened(proxy.through(victim.url)) as far:
            proxy.cut_after(0, "requests")
            if self.lost_request is Verdict.UNKNOWN:
                with pytest.raises(StoreUnavailable, match="nothing was written"):
                    far.update(everything(), claim)
                assert log(near) == ()
                proxy.heal()
                _take_in_time(far)
            else:
                assert verdicts(far.update(everything(), claim)) == {"j": Verdict.APPLIED}
        assert get(near, Kind.JOB, "j").fence == 1

    def test_a_cut_between_selection_and_commit_wrote_nothing_or_was_made_again(
        self, victim: Victim, near: Store, proxy: ChaosProxy
    ) -> None:
        """The commit cannot be sent at all, so there is no doubt about it."""
        put(near, job("j", due_at=near.clock() - SECOND))
        with victim.opened(proxy.through(victim.url)) as far:
            try:
                with victim.hurt_at_commit(proxy.cut, claim) as change:
                    found = set(verdicts(far.update(everything(), change)).values())
                assert found <= {self.lost_request, Verdict.UNKNOWN}
            except StoreUnavailable as error:
                assert "nothing was written" in str(error)  # noqa: PT017 - one of two good ends
            proxy.heal()
            if not far.read(HeldBy("s")):
                _take_in_time(far)
        assert get(near, Kind.JOB, "j").fence == 1


def _take_in_time(store: Store) -> None:
    """Claim `j` as soon as the server has noticed that the lost connection is gone, and freed its rows."""
    for _ in patience():
        if take(store, "s") == ["j"]:
            break
