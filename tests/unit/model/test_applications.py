"""I26: a job runs only the function of the application that declared it; the rules, without a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.applications import Peers, TakenOn, advertised, application_in, can_run, rivals, take_on
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Hold
from solocron.model.documents.session import FEATURES, Life, Session
from solocron.model.routing import fleet_of
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import claim
from solocron.model.transitions.registration import Proposal, propose
from tests.unit.model.one_job import LATE_FOR, T0, OneJob, definition, resolve

LATE = LATE_FOR * SECOND
LEASE = 15 * SECOND


def session(application: str | None, node: str = "n", **more: Any) -> Session:
    """A live node with the handler `work` of an application; None: of a release that did not say."""
    given: dict[str, Any] = {
        "handlers": ("work",),
        "applications": () if application is None else ((application, None),),
        "fingerprint": f"set of {application}",
        "features": FEATURES,
        "lease": LEASE,
        "expires_at": T0 + LEASE,
    }
    return Session(**{"name": f"session of {node}", "node": node, "host": "h", "pid": 1, **given, **more})


def fleet(*sessions: Session, now: int = T0, besides: str | None = None) -> Peers:
    return Peers.seen(sessions, besides=besides, now=now)


def job_of(application: str | None, **more: Any) -> OneJob:
    one = OneJob("1m", application=application)
    one.doc = replace(one.job, **{"source": f"set of {application}", **more})
    return one


def claimed_by(one: OneJob, application: str | None) -> Change | None:
    who = Claimant(session="s", node="n", late_for=LATE, application=lambda handler: application)
    return claim(one.doc, now=one.now, by=who, resolve=resolve)


# --- claims ----------------------------------------------------------------------------------------------------------


@pytest.mark.invariant("I26: a job runs only the function of the application that declared it")
def test_a_claim_passes_over_a_job_of_another_application() -> None:
    one = job_of("billing").at(60)
    assert claimed_by(one, "reports") is None
    taken = claimed_by(one, "billing")
    assert taken is not None
    assert isinstance(taken.answer, Hold)


@pytest.mark.parametrize(("stored", "ours"), [(None, "reports"), ("billing", None), (None, None)])
def test_what_is_not_known_is_nobody_elses(stored: str | None, ours: str | None) -> None:
    """A definition of an older release names no application: it must go on running."""
    taken = claimed_by(job_of(stored).at(60), ours)
    assert taken is not None
    assert isinstance(taken.answer, Hold)


@pytest.mark.invariant("I26: a job runs only the function of the application that declared it")
def test_a_triggered_run_of_another_application_waits_too() -> None:
    one = job_of("billing").at(30)
    one.trigger("r")
    assert claimed_by(one, "reports") is None


def test_a_slot_for_all_nodes_is_for_those_of_its_application() -> None:
    """Else it would wait for a part that no node ever claims."""
    sessions = (session("billing", "a"), session("reports", "b"), session(None, "c"))
    assert fleet_of(definition(application="billing"), sessions, now=T0) == {"a", "c"}


# --- what sessions advertise -----------------------------------------------------------------------------------------


def test_a_session_lists_the_handlers_of_all_applications_but_the_main_one() -> None:
    where = {"a": "shop", "b": "shop", "c": "lib"}
    handlers, applications = advertised(where, most=10)
    assert handlers == ("a", "b", "c")
    assert applications == (("lib", ("c",)), ("shop", None))
    one = session(None, handlers=handlers, applications=applications)
    assert {name: application_in(one, name) for name in where} == where
    assert application_in(one, "d") is None


def test_one_with_too_many_handlers_may_have_any_of_its_applications() -> None:
    handlers, applications = advertised({"a": "shop", "b": "lib"}, most=1)
    assert handlers is None
    one = session(None, handlers=handlers, applications=applications)
    assert can_run(one, definition(application="shop"))
    assert can_run(one, definition(application="lib"))
    assert not can_run(one, definition(application="billing"))
    assert rivals(definition(application="billing"), [one]) == {}, "whether it declares the job is not known"


def test_a_node_without_handlers_advertises_nothing() -> None:
    assert advertised({}, most=10) == ((), ())


def test_rivals_are_the_nodes_that_have_the_handler_from_elsewhere() -> None:
    live = [session("billing", "a"), session("reports", "c"), session("reports", "b"), session(None, "d")]
    assert rivals(definition(application="billing"), live) == {"reports": ["b", "c"]}
    assert rivals(definition(), live) == {}


# --- who may write ---------------------------------------------------------------------------------------------------


def proposed(one: OneJob, application: str, seen: Peers, schedule: str = "1m", revision: int | None = None) -> Any:
    proposal = Proposal(
        definition=definition(schedule, application=application), source=f"set of {application}", revision=revision
    )
    return one.apply(
        lambda doc: propose(doc, proposal=proposal, fleet=seen, now=one.now, late_for=LATE, resolve=resolve)
    )


@pytest.mark.invariant("I26: a job runs only the function of the application that declared it")
@pytest.mark.parametrize("schedule", ["1m", "1h"])
@pytest.mark.parametrize("revision", [None, 99])
def test_a_job_is_left_alone_while_its_application_lives(schedule: str, revision: int | None) -> None:
    """Whatever its revision: each application counts its own."""
    one = job_of("billing", revision=41)
    before = one.doc
    assert proposed(one, "reports", fleet(session("billing")), schedule, revision) is None
    assert one.doc is before


@pytest.mark.parametrize("schedule", ["1m", "1h"])
@pytest.mark.parametrize("revision", [None, 1])
def test_a_renamed_application_takes_its_jobs_on_when_the_old_one_is_gone(schedule: str, revision: int | None) -> None:
    """Also with a lower revision, or a rollback over the rename would leave them without any node."""
    one = job_of("billing", revision=41)
    assert proposed(one, "invoicing", fleet(), schedule, revision) == TakenOn("billing")
    assert one.job.definition.application == "invoicing"
    assert (one.job.source, one.job.revision) == ("set of invoicing", revision)
    assert proposed(one, "billing", fleet(session("invoicing")), schedule) is None, "and it stays there"


def test_a_function_that_moves_to_another_package_takes_its_job_along() -> None:
    """The old package is still there, with other functions."""
    one = job_of("billing")
    others = fleet(session("billing", handlers=("other",)))
    assert proposed(one, "reports", others) == TakenOn("billing")


def test_an_application_that_restarts_does_not_lose_its_jobs() -> None:
    """Its last node closed its session a moment ago; the next one begins in a few seconds."""
    gone = session("billing", state=Life.SWEPT, ended_at=T0)
    assert proposed(job_of("billing"), "reports", fleet(gone, now=T0 + LEASE - 1)) is None
    assert proposed(job_of("billing"), "reports", fleet(gone, now=T0 + LEASE)) == TakenOn("billing")


def test_a_definition_of_an_older_release_learns_its_application() -> None:
    one = job_of(None, source="set of billing")
    assert proposed(one, "billing", fleet(session(None))) == "adopted"
    assert one.job.definition.application == "billing"


def test_a_removed_job_may_be_declared_by_any_application() -> None:
    one = job_of("billing").at(60)
    one.claims()
    one.remove()
    assert proposed(one, "reports", fleet(session("billing", fingerprint="newer set"))) == "changed"
    assert one.job.definition.application == "reports"


def test_a_job_as_data_is_taken_on_by_the_same_rule() -> None:
    one = job_of("billing", source=None)

    def taken(application: str, seen: Peers) -> Any:
        return one.apply(lambda doc: take_on(doc, application=application, fleet=seen))

    assert taken("reports", fleet(session("billing"))) is None
    assert taken("billing", fleet()) is None, "it is its own already"
    assert taken("reports", fleet()) == TakenOn("billing")
    assert (one.job.definition.application, one.job.source) == ("reports", None)
    assert take_on(Absent(Kind.JOB, "work"), application="reports", fleet=fleet()) is None


# --- what a node knows of the others ---------------------------------------------------------------------------------


def test_a_replica_of_the_same_code_is_no_change_of_the_fleet() -> None:
    own, other = session("billing", "a"), session("billing", "b")
    alone = fleet(own, besides=own.name)
    assert fleet(own, other, besides=own.name) == alone == Peers()
    assert fleet(own, session("reports", "b"), besides=own.name) != alone


def test_a_process_that_only_holds_a_lock_is_no_part_of_the_fleet() -> None:
    assert fleet(session(None, pools=())) == Peers()


def test_a_dead_session_advertises_no_set() -> None:
    assert fleet(session("billing", state=Life.DEAD, ended_at=T0)).sets == frozenset()
