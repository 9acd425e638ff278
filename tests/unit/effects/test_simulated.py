"""Locks, keys and steps under every fault the simulator knows; and bugs put into them on purpose: each is caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from proof.simulator.options import Options, draw
from proof.simulator.world import Report, simulate
from solocron.effects.once import Once
from solocron.effects.steps import Steps
from solocron.lease.liveness import Liveness
from solocron.model.change import Change, SmallDocument
from solocron.model.documents import key as key_model
from solocron.model.documents import lock as lock_model
from solocron.model.documents import steps as steps_model

SEEDS = range(20)


def world(seed: int) -> Options:
    """A small world in which nodes die, freeze and lose messages, with two jobs that have effects."""
    drawn = draw(seed, nodes=4)
    return replace(
        drawn, hours=0.1, jobs=1, effects=2, poison=0.0, request=0.0, lease=6.0, freeze=40.0, kill=60.0, partition=90.0,
        lost_reply=0.03, late_request=0.02, failover=0.0, restore=0.0, chain=False,
    )  # fmt: skip


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
@pytest.mark.invariant("I16: the key of a slot is equal over attempts and nodes, and that of no other")
@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_hold_for_locks_keys_and_steps_whatever_goes_wrong() -> None:
    checked: Counter[str] = Counter()
    for seed in range(4):
        report = simulate(world(seed))
        assert report.violation is None, f"seed {seed}: {report.violation}\n" + "\n".join(report.tail)
        checked += report.checked
    for what in ("step", "key", "lock", "I17 commits", "I4 keys", "I4 locks", "LeaseLost"):
        assert checked[what] > 5, f"{what} was hardly put to the test: {checked}"


def any_token(doc: SmallDocument, *, token: str, now: int, **more: Any) -> Any:
    """Every caller is taken for the holder."""
    return doc.body.get("token", token)


def release_without_owner(original: Any) -> Any:
    return lambda doc, *, token, now: original(doc, token=any_token(doc, token=token, now=now), now=now)


def extend_without_owner(original: Any) -> Any:
    """A blind prolongation: of a lock that another process has by now, or that is free."""

    def extend(doc: Any, *, token: str, at_most: int, at_least: int, now: int) -> Any:
        state = lock_model.state_of(doc)
        return Change(lock_model._note(doc.name, replace(state, until=now + at_most, session=None)))

    return extend


def extend_adds(original: Any) -> Any:
    def extend(doc: Any, *, token: str, at_most: int, at_least: int, now: int) -> Any:
        state = lock_model.state_of(doc)
        if original(doc, token=token, at_most=at_most, at_least=at_least, now=now) is None or state.until is None:
            return None
        return Change(lock_model._note(doc.name, replace(state, until=state.until + at_most)))

    return extend


def fence_not_raised(original: Any) -> Any:
    def acquire(doc: Any, ask: Any, *, now: int, dead: Any = frozenset()) -> Any:
        change = original(doc, ask, now=now, dead=dead)
        before = lock_model.state_of(doc).fence
        if change is None or not isinstance(change.answer, lock_model.Granted) or change.doc is doc or not before:
            return change
        body = {**change.doc.body, "fence": before}
        return Change(replace(change.doc, body=body), answer=replace(change.answer, fence=before))

    return acquire


def step_saved_without_fence(original: Any) -> Any:
    def save(doc: Any, *, step: str, value: Any, fence: int, now: int) -> Any:
        return original(doc, step=step, value=value, fence=doc.body["fence"], now=now)

    return save


def step_carried_out_again(original: Any) -> Any:
    def find(self: Steps, name: str) -> Any:
        original(self, name)

    return find


def key_ends_without_owner(original: Any) -> Any:
    return lambda doc, *, token, now, **more: original(doc, token=any_token(doc, token=token, now=now), now=now, **more)


def everybody_is_dead(original: Any) -> Any:
    return lambda self, name, mode, *, now: True


def key_of_the_attempt(original: Any) -> Any:
    def init(self: Once, desk: Any, key: str, **options: Any) -> None:
        original(self, desk, f"{key}/{desk.fence}", **options)

    return init


BUGS: dict[str, tuple[Any, str, Callable[[Any], Any], set[str], int]] = {
    "X-01 release without owner": (lock_model, "release", release_without_owner, {"I4"}, 0),
    "X-02 extend without owner": (lock_model, "extend", extend_without_owner, {"I4", "I1"}, 4),
    "X-34 extend adds": (lock_model, "extend", extend_adds, {"I14"}, 5),
    "X-06 lock's fence not raised": (lock_model, "acquire", fence_not_raised, {"I3"}, 3),
    "X-25 step saved without its fence": (steps_model, "save", step_saved_without_fence, {"I17"}, 17),
    "X-26 saved step carried out again": (Steps, "find", step_carried_out_again, {"I17"}, 3),
    "X-24 key of the attempt": (Once, "__init__", key_of_the_attempt, {"I16"}, 7),
    "key ended by any caller": (key_model, "close", key_ends_without_owner, {"I4", "I16"}, 16),
    "every process counts as dead": (Liveness, "is_dead", everybody_is_dead, {"I1", "I4"}, 15),
}
"""The place, the bug, the invariants that may find it, and the world that finds it soonest, as histories go today."""


@pytest.mark.parametrize("bug", BUGS)
def test_an_injected_bug_is_caught(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    where, name, make, invariants, likely = BUGS[bug]
    monkeypatch.setattr(where, name, make(getattr(where, name)))
    report: Report | None = None
    for seed in (likely, *SEEDS):
        report = simulate(world(seed))
        if report.violation is not None:
            break
    assert report is not None
    assert report.violation is not None, f"{bug} survived {len(SEEDS)} worlds"
    assert report.invariant in invariants, report.violation
