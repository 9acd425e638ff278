"""What the doctor says of jobs and holds: each line turns when that very thing is wrong, and only then."""

from __future__ import annotations

from dataclasses import replace

from solocron.clock import SECOND
from solocron.doctor import work
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.request import leave
from solocron.model.documents.session import Life
from solocron.stores.contract import Blocked
from tests.unit.doctor.kit import NOW, dead, job, levels, only, session, sight


def test_a_job_whose_handler_no_live_node_has_is_a_failure() -> None:
    found = only(work.orphaned(sight(job(), session("a", handlers=("other",)))))
    assert found.level == "FAIL"
    assert found.detail.startswith("work: no live node")
    assert found.remedy is not None
    assert "solocron remove work" in found.remedy


def test_a_job_whose_pool_no_live_node_serves_is_a_failure() -> None:
    assert only(work.orphaned(sight(job(pool="gpu"), session("a")))).level == "FAIL"
    assert only(work.orphaned(sight(job(pool="gpu"), session("a", pools=("gpu",))))).level == "OK"


def test_a_node_with_too_many_handlers_to_list_is_trusted() -> None:
    assert only(work.orphaned(sight(job(), session("a", handlers=None)))).level == "OK"


def test_an_orphan_that_is_disabled_is_a_warning() -> None:
    assert only(work.orphaned(sight(job(enabled=False), session("a", handlers=())))).level == "WARN"


def test_without_nodes_no_job_is_called_orphaned() -> None:
    assert only(work.orphaned(sight(job()))).level == "OK"


def test_many_names_are_cut_short() -> None:
    jobs = [job(f"job-{n}") for n in range(8)]
    assert "and 3 more" in only(work.orphaned(sight(*jobs, session("a", handlers=())))).detail


def test_a_name_that_two_applications_declare_is_a_failure() -> None:
    billing, reports = (session(name, applications=((name, None),)) for name in ("billing", "reports"))
    mine = job(application="billing")
    assert only(work.applications(sight(mine, billing, session("old")))).level == "OK"
    found = only(work.applications(sight(mine, billing, reports)))
    assert found.level == "FAIL"
    assert found.detail.startswith("work belongs to billing, and reports on reports has a function of the same name")
    assert "namespace" in (found.remedy or "")
    assert only(work.orphaned(sight(mine, billing, reports))).level == "OK"
    assert only(work.orphaned(sight(mine, reports))).level == "FAIL"


def test_a_stored_definition_of_a_higher_revision_than_the_live_nodes_is_a_warning() -> None:
    newer = replace(job(), revision=42, source="x")
    assert only(work.revisions(sight(newer, session("a", revision=41), session("b", revision=42)))).level == "OK"
    assert only(work.revisions(sight(newer, session("a", revision=41, handlers=("other",))))).level == "OK"
    assert only(work.revisions(sight(newer))).level == "OK"
    found = only(work.revisions(sight(newer, session("a", revision=41), session("b"))))
    assert found.level == "WARN"
    assert found.detail.startswith("work: the stored definition (revision 42) is kept; where the live nodes (41)")
    assert "solocron adopt --all" in (found.remedy or "")


def test_a_due_job_that_no_node_claims_is_a_warning() -> None:
    found = only(work.overdue(sight(job(late=120), session("a"))))
    assert found.level == "WARN"
    assert "work: due for up to 120 s" in found.detail
    assert only(work.overdue(sight(job(late=20), session("a")))).level == "OK"
    assert only(work.overdue(sight(job(late=120)))).level == "OK"  # no node is there: another line says so


def test_a_request_that_no_node_accepts_is_a_warning() -> None:
    def left(seconds: int) -> SmallDocument:
        asked = (NOW - seconds * SECOND, 1)
        return leave(run="work@1", request="r", payload=None, at=None, keyed=False, asked=asked, token="t")

    assert only(work.requests(sight())).detail == "none waits"
    assert only(work.requests(replace(sight(), requests=(left(5),)))).level == "OK"
    found = only(work.requests(replace(sight(), requests=(left(5), left(90)))))
    assert found.level == "WARN"
    assert found.detail == "2 triggers of committed transactions not accepted, the oldest made 90 s ago (work)"


def test_a_schedule_that_cannot_be_read_is_a_failure() -> None:
    bad = job()
    bad = replace(bad, definition=replace(bad.definition, schedule={"kind": "cron", "expression": "x", "tz": "UTC"}))
    found = only(work.unreadable(sight(bad)))
    assert found.level == "FAIL"
    assert "work: cron 'x'" in found.detail
    assert only(work.unreadable(sight(job()))).level == "OK"


def test_what_was_set_aside_is_a_failure_with_its_reason() -> None:
    aside = Blocked(Kind.JOB, "work", NOW + 40 * SECOND, "duplicate record", 3)
    found = only(work.blocked(sight(job(), blocked=(aside,))))
    assert found.level == "FAIL"
    assert found.detail == "job work fails on its own (3 times, left out for 40 s): duplicate record"
    assert only(work.blocked(sight(job()))).level == "OK"


def test_a_hold_of_a_live_session_is_in_order() -> None:
    assert only(work.stuck_holds(sight(job(held_by="a"), session("a")))).level == "OK"


def test_a_hold_of_an_unknown_session_is_a_failure() -> None:
    found = only(work.stuck_holds(sight(job(held_by="a"), session("b"))))
    assert found.level == "FAIL"
    assert "whose session does not exist any more" in found.detail


def test_a_hold_of_a_swept_session_is_a_failure() -> None:
    gone = replace(dead("a"), state=Life.SWEPT)
    assert levels(work.stuck_holds(sight(job(held_by="a"), gone))) == ["FAIL"]


def test_a_hold_of_a_dead_session_is_a_failure_unless_it_is_being_taken_over() -> None:
    held = job(held_by="a")
    assert only(work.stuck_holds(sight(held, dead("a", since=2), session("b")))).level == "WARN"
    assert only(work.stuck_holds(sight(held, dead("a", since=20), session("b")))).level == "FAIL"
    assert only(work.stuck_holds(sight(held, dead("a", since=2)))).level == "FAIL"


def test_a_holder_that_no_readable_document_names_is_a_failure() -> None:
    found = only(work.stuck_holds(sight(holders=frozenset({"ghost"}))))
    assert found.level == "FAIL"
    assert "session ghost" in found.detail


def test_a_body_past_its_deadline_by_more_than_a_lease_is_a_failure() -> None:
    held = job(held_by="a", timeout=30)
    at = held.active[0].deadline
    assert at is not None
    late = sight(held, session("a", left=60), now=at + 16 * SECOND)
    found = only(work.stuck_holds(late))
    assert found.level == "FAIL"
    assert "16 s past its deadline" in found.detail
    assert found.remedy is not None
    assert "restart a" in found.remedy
    assert only(work.stuck_holds(sight(held, session("a", left=60), now=at + 14 * SECOND))).level == "OK"
