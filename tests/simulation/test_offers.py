"""Every state of a small fleet with a broker is sound and can still be brought to an end; without a rule it cannot."""

from __future__ import annotations

import pytest

from proof.explorer import STUCK, Report
from proof.offers.explorer import Faults, Offers, Rules, explore
from proof.offers.state import NODES, key_of, with_process
from proof.offers.world import OffersWorld

ONE = Faults(together=1)
NONE = Faults(0, 0, 0, 0, 0, 0, 0, 0)


def _sound(report: Report, at_least: int) -> None:
    assert report.wrong is None, "\n  ".join([report.wrong or "", *report.trace])
    assert report.states >= at_least, "the world was smaller than it is said to be"


@pytest.mark.parametrize("retries", [0, 1])
def test_any_one_fault(retries: int) -> None:
    """A kill, a freeze, a lost, doubled or delayed message, a lost answer of the broker or the store, at any moment."""
    _sound(explore(Offers(retries=retries, faults=ONE)), 700)


@pytest.mark.parametrize(
    "faults",
    [
        NONE._replace(freezes=1, doubled_messages=1, together=2),
        NONE._replace(kills=1, lost_answers=1, together=2),
        NONE._replace(delays=1, lost_answers=1, together=2),
        NONE._replace(forged_messages=1, doubled_messages=1, together=2),
        NONE._replace(forged_messages=1, freezes=1, together=2),
    ],
    ids=["frozen and doubled", "killed and no answer", "late and no answer", "forged and doubled", "forged and frozen"],
)
def test_two_faults_that_meet(faults: Faults) -> None:
    _sound(explore(Offers(faults=faults)), 100)


def test_a_sweep_of_a_session_that_is_gone_makes_no_other_state() -> None:
    """It did or did not, by the hash of the state, so that no two searches counted alike."""
    state = OffersWorld(Offers()).start()
    for who, fence in zip(NODES, (1, 2), strict=True):
        state = with_process(state, who, state.processes[NODES.index(who)]._replace(fence=fence))
    swept = [with_process(state, who, state.processes[NODES.index(who)]._replace(swept="gone")) for who in NODES]
    assert {key_of(state)} == {key_of(one) for one in swept}


def test_two_runs_of_one_job_do_not_overlap() -> None:
    _sound(explore(Offers(runs=2, faults=NONE._replace(delays=1, together=1))), 50)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("offers", "states"),
    [
        (Offers(faults=Faults(together=2)), 24_510),
        (Offers(retries=1, faults=Faults(together=2)), 61_690),
        (Offers(runs=2, retries=1, faults=ONE), 5_557),
        (Offers(faults=Faults(together=3)), 140_869),
        (Offers(retries=1, faults=Faults(together=3)), 389_417),
        (Offers(faults=Faults(together=4)), 520_934),
        (Offers(retries=1, faults=Faults(forged_messages=1, together=2)), 65_072),
    ],
    ids=str,
)
def test_larger_worlds(offers: Offers, states: int) -> None:
    """A world that has become smaller is not the one that was said to be explored."""
    report = explore(offers)
    _sound(report, states)
    assert report.states == states, "the page on hand-over tells these numbers"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_six_faults_as_far_as_a_million_states_go() -> None:
    """Safety alone: the world is larger, so that an end can be reached from each state is not shown."""
    _sound(explore(Offers(), limit=1_000_000), 1_000_000)


class TestWithoutARule:
    """Those that processes keep; the rules of the document are mutants of their own."""

    def test_a_pick_up_whose_answer_was_lost_is_repeated(self) -> None:
        """Or its hold is given back, which costs an attempt: without either it stays for good."""
        rules = Rules(pick_up_is_repeated=False, unknown_hold_is_given_back=False)
        report = explore(Offers(faults=NONE._replace(lost_answers=1, together=1), rules=rules))
        assert report.wrong == STUCK
        assert "picks up" in report.trace[-1]

    def test_a_pick_up_is_tied_to_a_live_session(self) -> None:
        rules = Rules(pick_up_needs_live_session=False)
        report = explore(Offers(faults=NONE._replace(freezes=1, lost_messages=2, together=3), rules=rules))
        assert report.wrong == STUCK
        assert report.trace[-1].startswith("late: ")

    def test_a_worker_gives_back_a_hold_that_it_does_not_know(self) -> None:
        """Its pick-up was refused, and the first try of it, delayed on the way, is granted after the hand-over."""
        rules = Rules(unknown_hold_is_given_back=False)
        report = explore(Offers(faults=NONE._replace(forged_messages=1, freezes=1, together=2), rules=rules))
        assert report.wrong == STUCK
        assert any(step.startswith("late: ") for step in report.trace)
