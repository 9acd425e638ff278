"""Register, redefine, remove, restore: nothing runs twice, is forgotten or invented, and nothing flip-flops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.clock import SECOND, from_us
from solocron.model.applications import Peers
from solocron.model.change import Absent, Kind
from solocron.model.policy import Backoff, allow
from solocron.model.transitions.claiming import Later
from solocron.model.transitions.finishing import take_over
from solocron.model.transitions.registration import Proposal, define, give_way, move_to_now, propose, remove
from solocron.schedules import At, Cron
from tests.unit.model.one_job import LATE_FOR, T0, OneJob, definition, resolve, seconds

LATE = LATE_FOR * SECOND
GONE = Absent(Kind.JOB, "work")


class TestDefine:
    def test_a_new_jobs_cursor_is_its_first_registration(self) -> None:
        job = OneJob("1m", catch_up="all")
        assert job.job.cursor == T0
        assert job.at(59).claim() is None
        assert job.at(60).run_all() == [60]

    def test_an_instant_that_had_passed_is_on_record_and_one_that_is_to_come_is_not(self) -> None:
        """A job that never runs looked like one that has still to run: nothing said that it was too late."""
        job = OneJob(At(from_us(T0 - 3600 * SECOND)))
        assert job.reasons("missed") == ["its only instant had passed when it was declared"]
        assert job.ended() == [(-3600, "missed")]
        assert job.at(60).claim() is None
        assert OneJob(At(from_us(T0 + SECOND))).at(60).run_all() == [1]

    def test_slots_up_to_now_are_decided_by_the_old_rule(self) -> None:
        job = OneJob("1m", catch_up="all").at(150)
        job.define("1h", catch_up="all")
        assert job.run_all() == [60, 120]
        assert job.at(3600).run_all() == [3600]

    def test_the_new_rule_has_no_slots_before_it_was_made(self) -> None:
        """Moved from 10:00 to 09:00 at half past nine: 09:00 was not missed today."""
        job = OneJob(Cron("0 10 * * *"), catch_up="all").at(9.5 * 3600)
        job.define(Cron("0 9 * * *"), catch_up="all")
        assert job.run_all() == []
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) == (24 + 9) * 3600

    def test_a_slot_that_ran_does_not_run_again_by_a_rule_that_has_it_too(self) -> None:
        job = OneJob("1m").at(60)
        job.run_all()
        job.define("30s")
        assert job.run_all() == []
        assert job.at(90).run_all() == [90]

    def test_a_waiting_range_is_worked_off_by_the_rule_it_came_from(self) -> None:
        job = OneJob("1m", catch_up="all").at(300)
        job.define("7s", catch_up="all")
        job.define("11s", catch_up="all")
        assert job.run_all() == [60, 120, 180, 240, 300]

    def test_old_and_new_slots_that_wait_do_not_run_into_each_other(self) -> None:
        job = OneJob("1m", catch_up="all", overlap="queue-all").at(60)
        hold = job.claims("a")
        job.at(180).claim("b")
        job.define("90s", catch_up="all", overlap="queue-all")
        job.at(361).claim("b")
        job.finish(hold)
        assert job.run_all("b") == [120, 180, 270, 360]

    def test_policies_alone_change_no_cursor(self) -> None:
        job = OneJob("1m", catch_up="skip").at(150)
        job.define("1m", catch_up="all")
        assert job.job.cursor == T0
        assert job.run_all() == [60, 120]

    def test_a_deploy_never_resets_a_pause(self) -> None:
        job = OneJob("1m").at(30)
        job.pause(note="release")
        job.at(90).define("30s")
        assert job.job.paused is not None
        assert job.job.paused.note == "release"
        assert job.covered("skipped") == [(60, 60, 1)]
        job.at(200).resume()
        assert job.covered("skipped") == [(60, 60, 1), (120, 180, 3)]

    def test_what_runs_goes_on_and_its_fence_stands(self) -> None:
        job = OneJob("1m").at(60)
        hold = job.claims()
        job.define("1h", timeout=5)
        assert job.finish(hold) == "accepted"

    def test_a_disabled_job_runs_nothing_and_records_it_when_enabled(self) -> None:
        job = OneJob("1m", enabled=False)
        assert job.job.due_at is None
        assert job.at(150).claim() is None
        job.define("1m")
        assert job.covered("skipped") == [(60, 120, 2)]
        assert job.reasons("skipped") == ["disabled"]
        assert job.at(180).run_all() == [180]

    def test_what_was_due_when_it_was_disabled_waits_until_it_is_enabled(self) -> None:
        job = OneJob("1m").at(70)
        job.define("1m", enabled=False)
        assert job.claim() is None
        job.at(100).define("1m")
        assert job.run_all() == [60]

    def test_disabled_and_paused_at_once_leave_one_record(self) -> None:
        job = OneJob("1m", enabled=False).at(30)
        job.pause(note="release")
        job.at(90).define("1m")
        assert job.records("skipped") == []
        job.at(150).resume()
        assert job.covered("skipped") == [(60, 120, 2)]

    def test_a_pause_that_ends_while_disabled_does_not_enable(self) -> None:
        job = OneJob("1m", enabled=False).at(30)
        job.pause(until=90)
        assert job.at(100).claim() is None
        assert job.job.paused is None
        assert job.job.due_at is None

    def test_losing_its_schedule_leaves_only_triggers(self) -> None:
        job = OneJob("1m").at(30)
        job.define(None)
        assert job.job.due_at is None
        job.trigger("r")
        assert job.run_all() == [30]


class TestPropose:
    """Never a lower revision writes; else only when no live node has the stored one."""

    def proposed(self, job: OneJob, proposal: Proposal, live: tuple[str, ...] = ()) -> str | None:
        answer: str | None = job.apply(
            lambda doc: propose(
                doc, proposal=proposal, fleet=Peers(sets=frozenset(live)), now=job.now, late_for=LATE, resolve=resolve
            )
        )
        return answer

    def proposal(self, schedule: str = "1m", source: str | None = "new", **more: Any) -> Proposal:
        return Proposal(definition=definition(schedule), source=source, **more)

    def stored(self, **more: Any) -> OneJob:
        job = OneJob("1m")
        job.doc = replace(job.job, source="old", **more)
        return job

    def test_a_new_job_is_written_at_once(self) -> None:
        job = OneJob()
        job.doc = GONE
        assert self.proposed(job, self.proposal("1h"), live=("old",)) == "added"

    def test_a_lower_revision_never_overwrites(self) -> None:
        assert self.proposed(self.stored(revision=3), self.proposal("1h", revision=2)) is None
        assert self.proposed(self.stored(revision=3), self.proposal("1h")) is None

    def test_a_higher_revision_overwrites_at_once(self) -> None:
        job = self.stored(revision=3)
        assert self.proposed(job, self.proposal("1h", revision=4), live=("old",)) == "changed"
        assert (job.job.revision, job.job.source) == (4, "new")

    def test_without_a_revision_it_waits_until_nobody_advertises_the_stored_one(self) -> None:
        job = self.stored()
        assert self.proposed(job, self.proposal("1h"), live=("old", "new")) is None
        assert self.proposed(job, self.proposal("1h"), live=("new",)) == "changed"

    def test_a_node_of_the_same_set_may_write_it(self) -> None:
        job = self.stored()
        assert self.proposed(job, self.proposal("1h", source="old"), live=("old",)) == "changed"

    def test_a_job_added_as_data_gives_way_to_a_declared_one(self) -> None:
        job = OneJob("1m")
        assert job.job.source is None
        assert self.proposed(job, self.proposal("1h"), live=("old", "new")) == "changed"

    def test_the_same_definition_again_writes_nothing(self) -> None:
        job = self.stored()
        before = job.doc
        assert self.proposed(job, self.proposal(source="old"), live=("old",)) is None
        assert job.doc is before

    def test_what_json_cannot_tell_apart_is_the_same_definition(self) -> None:
        """A store hands lists back for tuples: that must not look like a change at every beat."""
        job = OneJob("1m", payload=[1, {"a": [2]}])
        job.doc = replace(job.job, source="new")
        proposal = Proposal(definition=definition("1m", payload=(1, {"a": (2,)})), source="new")
        assert self.proposed(job, proposal) is None

    def test_the_same_definition_of_a_set_that_is_gone_is_adopted(self) -> None:
        job = self.stored()
        cursor = job.job.cursor
        job.at(1000)
        assert self.proposed(job, self.proposal(), live=("old",)) is None
        assert self.proposed(job, self.proposal(), live=("new",)) == "adopted"
        assert (job.job.source, job.job.cursor) == ("new", cursor)

    def test_the_same_definition_of_a_higher_revision_raises_the_stored_one(self) -> None:
        """Else a deploy in between could overwrite what the newest one has confirmed."""
        job = self.stored(revision=3)
        assert self.proposed(job, self.proposal(source="old", revision=5)) == "adopted"
        assert self.proposed(job, self.proposal("1h", source="other", revision=4)) is None

    def test_newer_zone_data_is_taken_into_account(self) -> None:
        job = self.stored(zone_data="2025b")
        assert self.proposed(job, self.proposal(source="old", zone_data="2026a")) == "adopted"
        assert job.job.zone_data == "2026a"
        assert self.proposed(job, self.proposal(source="old", zone_data="2025b")) is None

    def test_a_removed_job_that_still_runs_is_made_anew(self) -> None:
        job = OneJob("1m").at(60)
        hold = job.claims()
        job.remove()
        assert self.proposed(job.at(200), self.proposal()) == "changed"
        assert not job.job.removed
        assert job.records("skipped") == [], "while it was removed it had no slots"
        assert job.finish(hold) == "accepted"
        assert job.at(240).run_all() == [240]

    def test_a_removed_job_that_was_paused_is_made_anew_without_the_pause(self) -> None:
        job = OneJob("1m").at(60)
        job.claims()
        job.pause()
        job.remove()
        self.proposed(job.at(200), self.proposal())
        assert job.job.paused is None
        assert job.records("skipped") == []


class TestGivingWay:
    """After a rollback: the stored definition gives way to a lower revision, and only where a person asked for that."""

    def given_way(self, **more: Any) -> OneJob:
        job = OneJob("1m", **more)
        job.doc = replace(job.job, source="new", revision=42)
        assert job.at(30).apply(lambda doc: give_way(doc, now=job.now)) == "gives way"
        return job

    def proposed(self, job: OneJob, revision: int, live: int = 0, schedule: str = "1h") -> Any:
        proposal = Proposal(definition=definition(schedule), source=f"set {revision}", revision=revision)
        fleet = Peers(sets=frozenset({"new"}), revision=live)
        return job.apply(
            lambda doc: propose(doc, proposal=proposal, fleet=fleet, now=job.now, late_for=LATE, resolve=resolve)
        )

    @pytest.mark.parametrize(("schedule", "answer"), [("1h", "changed"), ("1m", "adopted")])
    def test_a_lower_revision_writes_what_has_given_way(self, schedule: str, answer: str) -> None:
        job = self.given_way()
        assert self.proposed(job, 41, schedule=schedule) == answer
        assert (job.job.revision, job.job.source) == (41, "set 41")
        assert job.job.due_at == T0 + (3600 if schedule == "1h" else 60) * SECOND
        assert self.proposed(job, 40, schedule="1d") is None, "and a lower one still never overwrites it"

    def test_not_while_a_node_of_a_higher_revision_lives(self) -> None:
        """It came during the request: the definition is left to it."""
        job = self.given_way()
        assert self.proposed(job, 41, live=42) is None
        assert self.proposed(job, 42, live=42) == "changed"
        assert job.job.revision == 42

    def test_it_is_due_at_once_and_stays_so_until_one_has_written(self) -> None:
        job = self.given_way()
        assert job.job.due_at == job.now
        assert isinstance(job.claim(), Later), "there is nothing to run yet"
        job.pause()
        job.at(40).resume()
        assert job.job.due_at == T0 + 30 * SECOND
        hold = job.at(60).claims()
        assert hold.slot == T0 + 60 * SECOND, "until then the stored definition counts"
        job.finish(hold)
        assert job.job.due_at == T0 + 30 * SECOND

    def test_what_is_added_as_data_or_removed_gives_no_way(self) -> None:
        data, gone = OneJob("1m"), OneJob("1m").at(60)
        gone.claims()
        gone.doc = replace(gone.job, source="new")
        gone.remove()
        for doc in (data.doc, gone.doc, GONE, self.given_way().doc):
            assert give_way(doc, now=T0) is None


class TestRemove:
    def test_one_that_does_not_run_is_gone_at_once(self) -> None:
        job = OneJob("1m").at(30)
        assert job.remove() == "removed"
        assert job.doc == GONE

    def test_what_waits_is_recorded_as_cancelled(self) -> None:
        job = OneJob("1m", catch_up="all").at(190)
        job.trigger("r")
        job.remove()
        assert job.covered("cancelled") == [(190, 190, 1), (60, 180, 3)]
        assert set(job.reasons("cancelled")) == {"the job was removed"}

    def test_what_runs_is_asked_to_stop_and_takes_it_along(self) -> None:
        job = OneJob("1m", overlap=allow(2), retries=3)
        first, second = job.at(60).claims("a"), job.at(120).claims("b")
        job.remove()
        assert job.job.removed
        assert all(hold.cancel for hold in job.job.active)
        job.fail(first)
        assert job.job.due_at is None
        assert job.finish(second) == "accepted"
        assert job.doc == GONE
        assert [status for _, status in job.ended()] == ["failed", "succeeded"]

    def test_a_takeover_or_a_hand_back_takes_it_along_as_well(self) -> None:
        for taken_over in (True, False):
            job = OneJob("1m", retries=3).at(60)
            hold = job.claims("a")
            job.remove()
            assert (job.take_over("a") if taken_over else job.hand_back(hold)) == "accepted"
            assert job.doc == GONE

    def test_while_it_still_runs_it_takes_no_slot_no_trigger_and_no_pause(self) -> None:
        job = OneJob("1m", overlap=allow(3)).at(60)
        job.claims("a")
        job.pause(until=90)
        job.remove()
        before = job.doc
        assert job.job.due_at is None
        assert job.at(600).claim("b") is None
        assert job.trigger("r") is None
        assert job.pause() is None
        assert job.resume() is None
        assert job.remove() is None
        assert job.doc is before
        assert job.log == {}

    def test_finishing_one_of_several_leaves_nothing_due(self) -> None:
        job = OneJob("1m", overlap=allow(3))
        first = job.at(60).claims("a")
        job.at(120).claims("b")
        job.pause(until=500)
        job.remove()
        job.finish(first)
        assert job.job.due_at is None

    def test_of_one_that_was_handed_back_it_is_recorded(self) -> None:
        job = OneJob("1m").at(60)
        job.hand_back(job.claims())
        job.remove()
        assert job.reasons("cancelled") == ["the node drains", "the job was removed"]

    def test_of_a_waiting_retry_the_failure_is_the_last_word(self) -> None:
        job = OneJob("1h", retries=1).at(3600)
        job.fail(job.claims())
        job.remove()
        assert job.ended() == [(3600, "failed")]

    def test_what_is_not_there_cannot_be_removed(self) -> None:
        assert remove(GONE, now=T0, late_for=LATE, resolve=resolve) is None

    @pytest.mark.invariant("I3: the fences of a job only grow")
    def test_fences_grow_over_removal_and_adding_again(self) -> None:
        job = OneJob("1m").at(60)
        old = job.claims()
        job.finish(old)
        job.remove()
        job.at(61).define("1m")
        assert job.at(120).claims().fence > old.fence

    @pytest.mark.invariant("I2: an attempt is claimed at most once, and none after the last word of its run")
    def test_runs_of_the_next_incarnation_have_names_of_their_own(self) -> None:
        job = OneJob("1m").at(60)
        old = job.claims()
        job.finish(old)
        job.remove()
        job.at(30).define("1m")  # the store's clock was set back, so the same slot comes again
        assert job.at(60).claims().run != old.run


class TestMoveToNow:
    """After a backup was restored, what the backup does not know may have run: nothing before now runs again."""

    def moved(self, job: OneJob, fence: int = 0) -> str | None:
        answer: str | None = job.apply(lambda doc: move_to_now(doc, fence=fence, now=job.now, resolve=resolve))
        return answer

    def test_slots_up_to_now_are_recorded_and_do_not_run(self) -> None:
        job = OneJob("1m", catch_up="all").at(150)
        assert self.moved(job) == "moved"
        assert job.run_all() == []
        assert job.covered("skipped") == [(60, 120, 2)]
        assert job.reasons("skipped") == ["the store was restored from a backup"]
        assert job.at(180).run_all() == [180]

    def test_slots_that_lie_ahead_of_a_clock_that_stepped_back_do_not_run_again(self) -> None:
        job = OneJob("1m", catch_up="all").at(100)
        job.apply(lambda doc: move_to_now(doc, fence=0, now=job.now, resolve=resolve, stopped=T0 + 190 * SECOND))
        assert job.at(200).run_all() == []
        assert job.covered("skipped") == [(60, 180, 3)]
        assert job.at(240).run_all() == [240]

    def test_what_waited_when_the_backup_was_made_does_not_run_either(self) -> None:
        job = OneJob("1m", catch_up="all").at(190)
        job.finish(job.claims())
        job.trigger("r")
        self.moved(job.at(200))
        assert job.run_all() == []
        assert sorted(job.covered("skipped")) == [(120, 180, 2), (190, 190, 1)]
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) == 240

    def test_a_retry_that_waited_is_given_up(self) -> None:
        job = OneJob("1h", retries=3, backoff=Backoff(first="1m")).at(3600)
        job.fail(job.claims())
        self.moved(job)
        assert job.job.waiting_runs == ()
        assert job.ended() == [(3600, "failed")]

    def test_what_was_held_when_the_backup_was_made_is_not_repeated(self) -> None:
        job = OneJob("1h", retries=3).at(3600)
        hold = job.claims()
        self.moved(job)
        assert job.job.active[0].cancel == "the store was restored from a backup"
        job.apply(lambda doc: take_over(doc, session=hold.session, now=job.now, reason="died", resolve=resolve))
        assert job.job.waiting_runs == ()
        assert job.ended() == [(3600, "lost")]

    @pytest.mark.invariant("I3: the fences of a job only grow")
    def test_the_fence_is_raised_above_what_anyone_has_seen(self) -> None:
        job = OneJob("1m").at(60)
        hold = job.claims()
        self.moved(job, fence=hold.fence + 1000)
        assert job.job.fence == hold.fence + 1000
        self.moved(job, fence=5)
        assert job.job.fence == hold.fence + 1001

    def test_a_pause_stays(self) -> None:
        job = OneJob("1m").at(30)
        job.pause(note="release")
        self.moved(job.at(90))
        assert job.job.paused is not None
        job.at(130).resume()
        assert job.covered("skipped") == [(60, 60, 1), (120, 120, 1)]

    def test_what_is_not_there_or_removed_is_left_alone(self) -> None:
        assert move_to_now(GONE, fence=1, now=T0, resolve=resolve) is None
        job = OneJob("1m").at(60)
        job.claims()
        job.remove()
        assert self.moved(job.at(600)) is None


def test_defining_is_the_same_whoever_does_it() -> None:
    proposal = Proposal(definition=definition("1m"), source="s")
    one = define(GONE, proposal=proposal, now=T0, late_for=LATE, resolve=resolve)
    two = define(GONE, proposal=proposal, now=T0, late_for=LATE, resolve=resolve)
    assert one == two


@pytest.mark.invariant("I11: the cursor passes no slot without a record")
@pytest.mark.parametrize("change", ["1h", None])
def test_a_redefinition_never_moves_the_cursor_back(change: str | None) -> None:
    job = OneJob("1m").at(600)
    job.run_all()
    cursor = job.job.cursor
    job.at(30).define(change)
    assert job.job.cursor == cursor
