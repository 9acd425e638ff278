"""Every transition is total and pure: any document, any time, the same answer twice, nothing handed in changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import SECOND
from solocron.model.applications import Peers
from solocron.model.change import Absent, Change, Kind
from solocron.model.codec import encode
from solocron.model.documents import request
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin, Status, run_id
from solocron.model.documents.session import FEATURES
from solocron.model.transitions import claiming, commands, finishing, offering, registration
from solocron.model.transitions.finishing import Outcome
from tests.unit.model.one_job import T0, resolve
from tests.unit.model.samples import definitions, instants, jobs, sessions

LATE = 25 * SECOND
OUTCOMES = [
    Outcome.succeeded("1"),
    Outcome.failed("x"),
    Outcome.timed_out("y"),
    Outcome.cancelled("z", again=True),
    Outcome(status=Status.LOST),
]
Transition = Callable[[Any, int, Any], Change | None]


def _proposal(draw: Any) -> registration.Proposal:
    definition: Definition = draw(definitions())
    return registration.Proposal(definition=definition, source=draw(st.sampled_from([None, "a", "b"])))


def _some_hold(draw: Any, job: Any) -> dict[str, Any]:
    """The hold of an active run, or one that is not there."""
    choices = [(hold.run, hold.fence) for hold in getattr(job, "active", ())]
    run, fence = draw(st.sampled_from([*choices, ("work@gone", 1)]))
    return {"run": run, "fence": fence}


def _some_run(draw: Any, job: Any) -> str:
    known = [one.run for one in (*getattr(job, "active", ()), *getattr(job, "waiting_runs", ()))]
    found: str = draw(st.sampled_from([*known, "work@gone"]))
    return found


def _claim(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    who = claiming.Claimant(session="s1", node="n", late_for=LATE, carriers={"auto": True})
    return lambda now: claiming.claim(doc, now=now, by=who, resolve=resolve)


def _finish(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    which, outcome = _some_hold(draw, doc), draw(st.sampled_from(OUTCOMES))
    return lambda now: finishing.finish(doc, **which, outcome=outcome, now=now, resolve=resolve)


def _hand_back(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    which = _some_hold(draw, doc)
    return lambda now: finishing.hand_back(doc, **which, reason="r", now=now, resolve=resolve)


def _take_over(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    return lambda now: finishing.take_over(doc, session="s1", now=now, reason="r", resolve=resolve)


def _trigger(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    at = draw(st.none() | instants)
    return lambda now: commands.trigger(doc, request="r", payload=[1], at=at, now=now, resolve=resolve)


def _cancel(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    run = _some_run(draw, doc)
    return lambda now: commands.cancel(doc, run=run, reason="r", now=now, resolve=resolve)


def _pause(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    until = draw(st.none() | instants)
    return lambda now: commands.pause(doc, by="b", note="n", until=until, now=now, late_for=LATE, resolve=resolve)


def _resume(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    return lambda now: commands.resume(doc, now=now, resolve=resolve)


def _define(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    proposal = _proposal(draw)
    return lambda now: registration.define(doc, proposal=proposal, now=now, late_for=LATE, resolve=resolve)


def _propose(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    proposal, seen = _proposal(draw), draw(st.lists(sessions, max_size=3))
    fleet = Peers.seen([replace(one, features=FEATURES) for one in seen], besides=None, now=T0)
    return lambda now: registration.propose(
        doc, proposal=proposal, fleet=fleet, now=now, late_for=LATE, resolve=resolve
    )


def _remove(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    return lambda now: registration.remove(doc, now=now, late_for=LATE, resolve=resolve)


def _move_to_now(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    return lambda now: registration.move_to_now(doc, fence=5, now=now, resolve=resolve)


def _accept(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    run = run_id("work", getattr(doc, "incarnation", 0), Origin.TRIGGER, "r")
    note = request.leave(run=run, request="r", payload=[1], at=None, keyed=False, asked=(1, 1), token="t")
    return lambda now: request.accept(doc, left=[note], now=now, resolve=resolve)


def _hand_over(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    which = _some_hold(draw, doc)
    return lambda now: offering.hand_over(doc, **which, pickup=SECOND, now=now, resolve=resolve)


def _put_back(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    which = _some_hold(draw, doc)
    return lambda now: offering.put_back(doc, **which, wait=SECOND, note="n", now=now, resolve=resolve)


def _pick_up(draw: Any, doc: Any) -> Callable[[int], Change | None]:
    run, attempt, has = _some_run(draw, doc), draw(st.integers(1, 3)), draw(st.booleans())
    by = claiming.Claimant(session="s1", node="n", late_for=LATE, has=lambda handler: has)
    return lambda now: offering.pick_up(doc, run=run, attempt=attempt, by=by, now=now, resolve=resolve)


TRANSITIONS = [
    _claim, _finish, _hand_back, _take_over, _trigger, _cancel, _pause, _resume, _define, _propose,
    _remove, _move_to_now, _accept, _hand_over, _put_back, _pick_up,
]  # fmt: skip


@given(job=jobs(), now=instants, data=st.data())
def test_every_transition_is_total_and_pure(job: Job, now: int, data: st.DataObject) -> None:
    before = encode(job)
    for transition in TRANSITIONS:
        call = transition(data.draw, job)
        first, second = call(now), call(now)
        assert first == second
        assert encode(job) == before
        if first is not None and first.doc is not None:
            assert isinstance(first.doc, Job)
            assert first.doc.cursor >= job.cursor
            assert first.doc.fence >= job.fence
            assert (first.doc.name, first.doc.incarnation) == (job.name, job.incarnation)
            encode(first.doc)


@given(data=st.data())
def test_of_a_document_that_is_not_there_nothing_comes_but_a_new_one(data: st.DataObject) -> None:
    for transition in TRANSITIONS:
        change = transition(data.draw, Absent(Kind.JOB, "work"))(T0)
        assert (change is not None) == (transition in (_define, _propose))


@pytest.mark.invariant("I20: there is no storm of starts")
@given(job=jobs(), now=instants)
def test_what_gives_nothing_to_run_is_not_due_any_more(job: Job, now: int) -> None:
    """Else the same document would head every selection, be looked at again at once, and starve the rest."""
    who = claiming.Claimant(session="s1", node="n", late_for=LATE, carriers={"auto": True})
    for _ in range(200):
        change = claiming.claim(job, now=now, by=who, resolve=resolve)
        if change is None:
            break
        assert isinstance(change.doc, Job)
        job = change.doc
        if change.answer is None:
            break
        job = replace(job, active=())
    else:
        return  # thousands of runs wait: enough seen
    settled = claiming.recompute_due(job, resolve(job.definition.schedule))
    assert settled.due_at is None or settled.due_at > now
