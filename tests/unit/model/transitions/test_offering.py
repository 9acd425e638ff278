"""A message is a ticket for one attempt, good once: offers, pick-ups, and what is put back, lapses or is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model._fast.values import replace
from solocron.model.applications import Peers
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Status
from solocron.model.documents.session import FEATURES, OFFERS, Life, Session
from solocron.model.timetable import Timetable
from solocron.model.transitions.finishing import Outcome
from solocron.model.transitions.offering import Dropped, Handed
from solocron.model.transitions.registration import Proposal, propose
from solocron.model.transitions.rejoin import write_off
from tests.unit.model.one_job import T0, OneJob, resolve, seconds

HOUR = 3600


def carried(schedule: str | None = "1h", **options: Any) -> OneJob:
    """A job whose bodies run in workers behind a queue."""
    return OneJob(schedule, run_in="queue", hand_over={}, **options)


def offered(job: OneJob, at: float = HOUR, node: str = "a") -> Hold:
    """Claim what is due and publish it; the claim is the ticket."""
    hold = job.at(at).claims(node)
    assert hold.handing
    assert job.hand_over(hold) is Handed.OFFERED
    return hold


class TestHandOver:
    def test_a_claim_hands_over_and_no_timeout_counts_yet(self) -> None:
        hold = carried(timeout=60).at(HOUR).claims("a")
        assert (hold.handing, hold.deadline) == (True, None)

    def test_a_node_that_does_not_know_the_carrier_leaves_the_job_alone(self) -> None:
        job = OneJob("1h", run_in="elsewhere", hand_over={}).at(HOUR)
        assert job.claim("a") is None
        assert job.job.cursor == T0

    def test_an_offer_has_no_holder_and_writes_no_record(self) -> None:
        job = carried()
        offered(job)
        (waiting,) = job.job.waiting_runs
        assert (job.job.active, job.log, waiting.attempt) == ((), {}, 1)
        assert waiting.offer == Offer(carrier="queue", since=job.now, until=job.now + 300 * SECOND)

    def test_it_is_due_when_it_lapses_or_with_the_next_slot(self) -> None:
        job = carried()
        offered(job)
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) == HOUR + 300

    def test_a_worker_that_was_faster_than_the_node_is_no_error(self) -> None:
        job = carried()
        ticket = job.at(HOUR).claims("a")
        held = job.picks_up(ticket)
        assert job.hand_over(ticket) is Handed.OVERTAKEN
        assert job.job.active == (held,)

    def test_the_repeated_hand_over_changes_nothing(self) -> None:
        job = carried()
        ticket = offered(job)
        before = job.doc
        assert job.hand_over(ticket) is Handed.OVERTAKEN
        assert job.doc is before


class TestPickUp:
    def test_it_is_a_claim_of_its_own_with_a_higher_fence_and_the_timeout_from_here(self) -> None:
        job = carried(timeout=60)
        ticket = offered(job)
        hold = job.at(HOUR + 20).picks_up(ticket)
        assert hold.fence > ticket.fence
        assert (hold.session, hold.node, hold.attempt, hold.handing) == ("session of w", "w", 1, False)
        assert hold.deadline == job.now + 60 * SECOND
        assert job.finish(hold) == "accepted"
        assert job.ended() == [(HOUR, "succeeded")]

    @pytest.mark.parametrize("published", [True, False])
    def test_a_worker_without_the_calendar_leaves_the_due_time_as_it_is(self, published: bool) -> None:
        """It made the job due at once, and a node wrote it again only to compute the time."""
        job = carried()
        ticket = offered(job) if published else job.at(HOUR).claims("a")
        due, knows = job.job.due_at, job.by
        job.by = lambda spec: Timetable(None, known=False)
        job.at(HOUR + 20).picks_up(ticket)
        assert job.job.due_at == due
        job.by = knows
        assert job.claim("a") is None, "nothing is due, and nothing is written"
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) <= 2 * HOUR, "never later than the next slot"

    def test_rule_a_ticket_is_good_once(self) -> None:
        job = carried()
        ticket = offered(job)
        hold = job.picks_up(ticket, "w")
        assert job.pick_up(ticket, "v") is Dropped.STALE
        job.finish(hold)
        assert job.pick_up(ticket, "v") is Dropped.STALE

    def test_rule_the_same_session_gets_the_same_hold_again(self) -> None:
        """The reply to its first request was lost."""
        job = carried()
        ticket = offered(job)
        hold = job.picks_up(ticket, "w")
        assert job.pick_up(ticket, "w") == hold
        assert job.job.fence == hold.fence

    def test_rule_the_ticket_is_run_and_attempt_not_the_fence(self) -> None:
        """A message that is published again has the id of the first one, which brokers may keep instead."""
        job = carried()
        first = offered(job)
        again = job.at(HOUR + 301).claims("b")
        assert (again.run, again.attempt) == (first.run, first.attempt)
        assert again.fence > first.fence
        assert job.picks_up(first).attempt == 1

    def test_rule_only_what_was_handed_over_can_be_picked_up(self) -> None:
        """A forged ticket starts no trigger and no retry before its time."""
        job = carried(retries=1)
        job.trigger("r1", at=60)
        (waiting,) = job.job.waiting_runs
        forged = Hold(
            run=waiting.run, slot=0, origin=waiting.origin, attempt=1, tries=0, session="", node="", fence=0,
            claimed_at=0,
        )  # fmt: skip
        assert job.pick_up(forged) is Dropped.STALE

    def test_rule_a_retry_needs_a_message_of_its_own(self) -> None:
        job = carried(retries=1)
        ticket = offered(job)
        job.fail(job.picks_up(ticket))
        assert job.pick_up(ticket, "v") is Dropped.STALE
        assert job.job.waiting_runs[0].offer is None
        second = offered(job, HOUR + 30)
        assert second.attempt == 2
        assert job.picks_up(second).attempt == 2

    def test_rule_a_message_of_an_earlier_attempt_does_not_start_the_next(self) -> None:
        job = carried(retries=1)
        first = offered(job)
        job.fail(job.picks_up(first))
        second = offered(job, HOUR + 30)
        assert job.pick_up(first, "v") is Dropped.STALE
        assert job.picks_up(second).attempt == 2

    def test_a_message_that_arrives_after_the_node_died_is_still_good(self) -> None:
        job = carried()
        ticket = job.at(HOUR).claims("a")
        job.at(HOUR + 15).take_over("a")
        assert job.picks_up(ticket).attempt == 1

    def test_nothing_starts_before_its_slot_by_a_clock_that_went_backwards(self) -> None:
        job = carried()
        ticket = offered(job)
        assert job.at(HOUR - 20).pick_up(ticket) is Dropped.NOT_NOW
        assert job.job.due_at == ticket.slot

    def test_paused_it_is_dropped_and_waits_for_the_resume(self) -> None:
        job = carried()
        ticket = offered(job)
        job.pause()
        assert job.pick_up(ticket) is Dropped.NOT_NOW
        assert job.job.due_at is None
        job.at(HOUR + 60).resume()
        assert job.claims("a").run == ticket.run

    def test_paused_by_a_pause_of_many_jobs_too(self) -> None:
        job = carried()
        ticket = offered(job)
        job.pause_many()
        assert job.pick_up(ticket) is Dropped.NOT_NOW

    def test_what_a_person_asked_for_by_name_runs_in_a_pause(self) -> None:
        job = carried()
        job.pause()
        job.trigger()
        ticket = job.claims("a")
        job.hand_over(ticket)
        assert job.picks_up(ticket).run == ticket.run

    def test_a_disabled_job_starts_nothing(self) -> None:
        job = carried()
        ticket = offered(job)
        job.define("1h", run_in="queue", hand_over={}, enabled=False)
        assert job.pick_up(ticket) is Dropped.NOT_NOW

    def test_rule_start_within_counts_up_to_the_pick_up(self) -> None:
        job = carried(start_within=30)
        ticket = offered(job)
        assert job.at(HOUR + 31).pick_up(ticket) is Dropped.MISSED
        assert job.reasons("missed") == ["not picked up from queue within start_within"]

    def test_a_worker_without_the_function_leaves_it_to_another(self) -> None:
        job = carried()
        ticket = offered(job)
        assert job.pick_up(ticket, has=False) is Dropped.NO_HANDLER
        assert job.at(HOUR + 4).claim("a") is None
        again = job.at(HOUR + 5).claims("a")
        assert again.offer is not None
        assert (again.attempt, again.offer.tries) == (1, 2)

    def test_the_crash_of_an_earlier_attempt_is_told_to_the_worker(self) -> None:
        job = carried(retries=1)
        job.picks_up(offered(job), "w")
        job.at(HOUR + 30).take_over("w")
        assert job.picks_up(offered(job, HOUR + 30), "v").crashed

    def test_a_message_of_a_job_that_now_runs_on_nodes_finds_nothing_once_one_has_it(self) -> None:
        job = carried()
        ticket = offered(job)
        job.define("1h")
        hold = job.at(HOUR + 301).claims("a")
        assert (hold.handing, hold.attempt) == (False, 1)
        assert job.pick_up(ticket) is Dropped.STALE


class TestOverlap:
    def test_an_offer_counts_as_running(self) -> None:
        job = carried("1m")
        offered(job, 60)
        assert job.at(120).claim("a") is None
        assert job.reasons("skipped") == ["overlap: an earlier run waits in queue"]

    def test_a_request_waits_for_it_too(self) -> None:
        job = carried()
        ticket = offered(job)
        job.trigger()
        assert job.claim("a") is None
        job.finish(job.picks_up(ticket))
        assert job.claims("a").run != ticket.run

    def test_a_pick_up_of_what_was_put_back_waits_while_another_run_has_its_place(self) -> None:
        job = carried()
        ticket = job.at(HOUR).claims("a")
        job.put_back(ticket, wait=60)
        job.trigger()
        other = job.claims("a")
        assert other.run != ticket.run
        assert job.pick_up(ticket) is Dropped.NOT_NOW
        assert [hold.run for hold in job.job.active] == [other.run]

    def test_replace_ends_an_offer_at_once(self) -> None:
        job = carried("1m", overlap="replace")
        ticket = offered(job, 60)
        new = job.at(120).claims("a")
        assert seconds(new.slot) == 120
        assert job.reasons("skipped") == ["overlap: replaced by a later slot"]
        assert job.pick_up(ticket) is Dropped.STALE

    def test_replace_ends_a_hand_over_under_way_at_once(self) -> None:
        job = carried("1m", overlap="replace")
        ticket = job.at(60).claims("a")
        assert seconds(job.at(120).claims("b").slot) == 120
        assert job.hand_over(ticket) is Handed.OVERTAKEN


class TestThatNobodyPicksUp:
    def test_it_lapses_and_is_published_again_as_the_same_attempt(self) -> None:
        job = carried()
        ticket = offered(job)
        assert job.at(HOUR + 299).claim("b") is None
        again = job.at(HOUR + 300).claims("b")
        assert (again.run, again.attempt, again.tries) == (ticket.run, 1, 0)
        assert again.offer == Offer(carrier="queue", since=T0 + HOUR * SECOND, tries=2)

    def test_rule_a_dead_node_costs_no_retry(self) -> None:
        """No body can have started under the hold of a node that only publishes."""
        job = carried(retries=0)
        job.at(HOUR).claims("a")
        job.at(HOUR + 15).take_over("a")
        assert job.log == {}
        hold = job.claims("b")
        assert (hold.attempt, hold.tries) == (1, 0)

    def test_a_node_that_drains_costs_none_either(self) -> None:
        job = carried()
        job.hand_back(job.at(HOUR).claims("a"))
        assert job.log == {}
        assert job.claims("b").attempt == 1

    def test_what_the_broker_refused_waits_and_keeps_its_attempt(self) -> None:
        job = carried(start_within=60)
        hold = job.at(HOUR).claims("a")
        assert job.put_back(hold, wait=2, note="not accepted by queue") is Handed.PUT_BACK
        assert job.at(HOUR + 1).claim("a") is None
        again = job.at(HOUR + 2).claims("a")
        assert (again.attempt, again.tries) == (1, 0)
        job.put_back(again, wait=60, note="not accepted by queue")
        assert job.at(HOUR + 62).claim("a") is None
        assert job.reasons("missed") == ["not accepted by queue within start_within"]

    def test_any_other_end_of_a_hand_over_puts_it_back(self) -> None:
        job = carried()
        hold = job.at(HOUR).claims("a")
        job.finish(hold, Outcome(status=Status.LOST, reason="the store went back"))
        assert (job.log, job.claims("b").attempt) == ({}, 1)

    def test_a_worker_that_dies_uses_a_retry_up(self) -> None:
        job = carried(retries=0)
        job.picks_up(offered(job), "w")
        job.at(HOUR + 15).take_over("w")
        assert job.ended() == [(HOUR, "lost")]
        assert job.claim("a") is None


class TestThatIsWithdrawn:
    def test_a_cancelled_offer_is_over_at_once(self) -> None:
        job = carried()
        ticket = offered(job)
        assert job.cancel(ticket.run) == "cancelled"
        assert job.ended() == [(HOUR, "cancelled")]
        assert job.pick_up(ticket) is Dropped.STALE

    def test_so_is_a_hand_over_under_way(self) -> None:
        job = carried()
        ticket = job.at(HOUR).claims("a")
        assert job.cancel(ticket.run) == "cancelled"
        assert (job.job.active, job.hand_over(ticket)) == ((), Handed.OVERTAKEN)

    def test_one_that_was_picked_up_is_asked_to_stop(self) -> None:
        job = carried()
        hold = job.picks_up(offered(job))
        assert job.cancel(hold.run) == "asked"

    @pytest.mark.parametrize("published", [True, False])
    def test_a_removed_job_is_gone_with_its_offers(self, published: bool) -> None:
        job = carried()
        ticket = offered(job) if published else job.at(HOUR).claims("a")
        job.remove()
        assert not isinstance(job.doc, Job)
        assert job.ended() == [(HOUR, "cancelled")]
        assert job.pick_up(ticket) is None


class TestForwarded:
    def forwarded(self, **options: Any) -> OneJob:
        return OneJob("1h", run_in="post", hand_over={}, **options)

    def test_acceptance_is_the_outcome(self) -> None:
        job = self.forwarded(pause_after=1)
        hold = job.at(HOUR).claims("a")
        assert job.finish(hold, Outcome(status=Status.HANDED_OVER, reason="accepted by post as x")) == "accepted"
        assert job.ended() == [(HOUR, "handed_over")]
        assert (job.job.failures, job.job.last and job.job.last.status) == (0, Status.HANDED_OVER)

    def test_no_message_of_it_can_be_picked_up(self) -> None:
        job = self.forwarded()
        assert job.pick_up(job.at(HOUR).claims("a")) is Dropped.STALE

    def test_nor_one_that_names_a_target_behind_a_carrier_with_workers(self) -> None:
        job = OneJob("1h", run_in="queue", hand_over={"target": "reports.nightly"})
        assert job.pick_up(job.at(HOUR).claims("a")) is Dropped.STALE

    def test_a_message_that_can_never_be_carried_is_a_failure(self) -> None:
        job = self.forwarded(retries=3)
        hold = job.at(HOUR).claims("a")
        job.finish(hold, Outcome(status=Status.FAILED, error="its payload is not a mapping", final=True))
        assert (job.ended(), job.claim("a"), job.job.failures) == ([(HOUR, "failed")], None, 1)


class TestShards:
    def test_each_shard_is_a_message_of_its_own(self) -> None:
        job = carried(shards=2)
        first, second = offered(job), offered(job)
        assert [hold.shard for hold in (first, second)] == [0, 1]
        one, two = job.picks_up(second, "w"), job.picks_up(first, "v")
        assert {one.shard, two.shard} == {0, 1}
        job.finish(one)
        job.finish(two)
        assert not job.job.waiting


class TestAStoreThatWentBack:
    """A worker that picked a run up in what was lost may have died: what it may have started is written off."""

    def written_off(self, job: OneJob, since: float = 0.0) -> OneJob:
        """Open the namespace with doubt; the check began so many seconds ago."""
        until = job.now - round(since * SECOND)
        job.apply(lambda doc: write_off(doc, until=until, late_for=25 * SECOND, now=job.now, resolve=resolve))
        return job

    def test_what_waits_in_a_queue_is_written_off_with_what_was_due(self) -> None:
        job = carried()
        offered(job)
        assert self.written_off(job).ended() == [(HOUR, "lost")]
        assert not job.job.waiting

    def test_rule_so_is_a_hand_over_under_way(self) -> None:
        """Its message may have been out, and picked up before its node had left the offer."""
        job = carried()
        ticket = job.at(HOUR).claims("a")
        assert self.written_off(job).ended() == [(HOUR, "lost")]
        assert (job.job.active, job.job.waiting) == ((), 0)
        assert job.hand_over(ticket) is Handed.OVERTAKEN
        assert job.pick_up(ticket) is Dropped.STALE

    def test_rule_so_is_what_waits_to_be_handed_over_again(self) -> None:
        """The carrier gave no clear answer, and the message was in the queue all the same."""
        job = carried()
        ticket = job.at(HOUR).claims("a")
        job.put_back(ticket, wait=60)
        assert self.written_off(job).ended() == [(HOUR, "lost")]
        assert job.pick_up(ticket) is Dropped.STALE

    def test_rule_the_next_attempt_does_not_wait_for_the_offer_to_lapse(self) -> None:
        """It is published at once, as after a crash, and not when a message that counts no more would have lapsed."""
        job = carried(retries=1)
        offered(job)
        self.written_off(job.at(HOUR + 20), since=15)
        assert [(one.attempt, seconds(one.ready_at), one.offer) for one in job.job.waiting_runs] == [
            (2, HOUR + 20, None)
        ]
        assert job.claims("b").attempt == 2

    @pytest.mark.parametrize("handed_over", [True, False])
    def test_rule_writing_off_twice_uses_up_one_retry(self, handed_over: bool) -> None:
        """Every node that finds the check complete writes off, and repeats it if the reply is lost."""
        job = carried(retries=2)
        if handed_over:
            offered(job)
        job.at(HOUR + 20)
        for _ in range(2):
            self.written_off(job, since=15)
        assert [(one.attempt, one.tries) for one in job.job.waiting_runs] == [(2, 1)]
        assert [(record.attempt, str(record.status)) for record in job.log.values()] == [(1, "lost")]

    def test_and_what_its_node_put_back_during_the_check(self) -> None:
        job = carried()
        ticket = job.at(HOUR).claims("a")
        job.at(HOUR + 5).put_back(ticket)
        assert self.written_off(job, since=3).ended() == [(HOUR, "lost")]

    def test_where_retries_are_left_the_next_attempt_is_handed_over(self) -> None:
        job = carried(retries=1)
        ticket = job.at(HOUR).claims("a")
        assert self.written_off(job.at(HOUR + 20), since=15).ended() == [(HOUR, "lost")]
        again = job.claims("b")
        assert (again.run, again.attempt, again.handing) == (ticket.run, 2, True)
        assert job.pick_up(ticket) is Dropped.STALE

    def test_what_no_worker_picks_up_is_left_to_the_node_that_sends_it(self) -> None:
        job = OneJob("1h", run_in="post", hand_over={})
        hold = job.at(HOUR).claims("a")
        assert self.written_off(job).job.active == (hold,)
        assert job.finish(hold, Outcome(status=Status.HANDED_OVER)) == "accepted"


class TestBesideAnOlderNode:
    def propose(self, doc: Job | Absent, *, lacking: frozenset[str]) -> Change | None:
        definition = Definition(handler="tick", schedule=None, run_in="queue", hand_over={})
        return propose(
            doc, proposal=Proposal(definition=definition, source="new"), fleet=Peers(lacking=lacking), now=T0,
            late_for=60 * SECOND, resolve=resolve,
        )  # fmt: skip

    def test_rule_a_carrier_is_not_written_where_a_node_would_misread_it(self) -> None:
        plain = OneJob("1h").job
        for doc in (plain, Absent(Kind.JOB, "tick")):
            assert self.propose(doc, lacking=frozenset({OFFERS})) is None
            assert self.propose(doc, lacking=frozenset()) is not None

    def test_what_a_fleet_lacks_is_told_by_its_sessions(self) -> None:
        def session(name: str, **more: Any) -> Session:
            return Session(name=name, node=name, host="h", pid=1, lease=SECOND, **more)

        new, old, guest = session("new", features=FEATURES), session("old"), session("guest", pools=())
        assert Peers.seen([new, guest], besides=None, now=T0).lacking == frozenset()
        assert Peers.seen([new, old], besides=None, now=T0).lacking == {OFFERS}
        assert Peers.seen([new, replace(old, state=Life.DEAD)], besides=None, now=T0).lacking == frozenset()
