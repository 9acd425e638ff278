"""Every state of a small fleet is sound and can still be brought to a good end; without one of the rules it cannot.

Counterexamples are the shortest there are, and they are those that the rules were made for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from proof.explorer import STUCK, Report
from proof.protocol_model import world
from proof.protocol_model.explorer import Faults, Rules, Small, explore
from solocron.model.change import Absent, Change
from solocron.model.documents import session
from tests.simulation.model_mutants import MUTANTS

NONE = Faults(0, 0, 0, 0, 0)
TWO = Faults(together=2)


def _sound(report: Report, at_least: int) -> None:
    assert report.wrong is None, "\n  ".join([report.wrong or "", *report.trace])
    assert report.states >= at_least, "the world was smaller than it is said to be"


def test_without_faults_there_is_little_to_explore() -> None:
    _sound(explore(Small(faults=NONE)), 8)


@pytest.mark.parametrize("swap", [False, True], ids=["script", "swap"])
def test_any_two_of_a_freeze_a_kill_a_lost_reply_and_a_late_request(swap: bool) -> None:
    """Around one slot, in both kinds of store: a change is computed on arrival, or computed and swapped in."""
    _sound(explore(Small(slots=1, faults=TWO, swap=swap)), 4_000)


@pytest.mark.parametrize("overlap", ["skip", "replace", "queue-all"])
@pytest.mark.parametrize("retries", [0, 2])
def test_other_policies(overlap: str, retries: int) -> None:
    _sound(explore(Small(faults=Faults(1, 1, 0, 0, 1), overlap=overlap, retries=retries)), 200)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "small",
    [
        Small(faults=TWO),
        Small(faults=TWO, swap=True),
        Small(slots=1, faults=Faults(together=3)),
        Small(slots=1),
        Small(),
        Small(faults=Faults(together=3), swap=True),
        Small(retries=0, overlap="skip"),
        Small(faults=TWO, prompt=False),
        Small(nodes=3, faults=TWO),
        Small(slots=3, faults=TWO),
    ],
    ids=str,
)
def test_larger_worlds(small: Small) -> None:
    _sound(explore(small), 10_000)


class TestWithoutARule:
    def test_1_a_late_claim_is_held_by_a_session_that_nobody_sweeps_again(self) -> None:
        rules = Rules(claim_needs_live_session=False)
        report = explore(Small(faults=Faults(1, 0, 0, 0), rules=rules))
        assert report.wrong == STUCK
        assert any("freeze while sending" in step for step in report.trace)
        assert report.trace[-1].startswith("late: ")

    def test_2_a_sweeper_that_dies_half_way_leaves_the_holds_for_ever(self) -> None:
        rules = Rules(dead_until_swept=False)
        report = explore(Small(faults=Faults(1, 1, 0, 0), rules=rules))
        assert report.wrong == STUCK
        assert any("bury" in step for step in report.trace)

    @pytest.mark.parametrize("faults", [Faults(0, 0, 1, 0), Faults(0, 0, 0, 1)], ids=["lost reply", "late"])
    def test_3_a_live_session_holds_what_its_node_does_not_know(self, faults: Faults) -> None:
        report = explore(Small(faults=faults, rules=Rules(reconcile=False)))
        assert report.wrong == STUCK
        assert any("claim" in step for step in report.trace)
        assert len(report.trace) <= 4


class TestABrokenMachine:
    """The safety checks see what they are for."""

    @pytest.mark.parametrize(
        ("name", "invariant", "slots"), [("X-04", "I11", 1), ("X-06", "I3", 1), ("X-07", "I4", 1), ("X-27", "I9", 2)]
    )
    def test_an_injected_bug_is_found(self, name: str, invariant: str, slots: int) -> None:
        mutant = next(one for one in MUTANTS if one.name == name)
        with mutant.alive() as bites:
            report = explore(Small(slots=slots, faults=TWO))
        assert report.wrong is not None
        assert invariant in report.wrong
        assert bites.count

    def test_a_node_that_does_not_stop_when_its_trust_ends_is_found(self) -> None:
        with patch.object(world, "trust", lambda state, i: state):
            report = explore(Small(slots=1, faults=TWO))
        assert report.wrong == "I8: a second body starts beside one that still runs"

    def test_a_renewal_that_revives_is_found(self) -> None:
        def reviving(doc: Any, *, now: int, running: int = 0) -> Change | None:
            if isinstance(doc, Absent):
                return None
            return Change(replace(doc, expires_at=now + doc.lease, beats=doc.beats + 1, state=session.Life.LIVE))

        with patch.object(session, "renew", reviving):
            report = explore(Small(faults=TWO))
        assert report.wrong == "I4: a buried session was renewed"


def test_a_limit_cuts_the_exploration_short() -> None:
    assert explore(Small(), limit=100).states == 100
