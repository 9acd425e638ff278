"""A small fleet whose store goes back keeps its promise in every state it can reach; without a rule it does not.

Counterexamples are the shortest there are. To read them: `pytest -o log_cli=true -o log_cli_level=INFO`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import pytest

from proof.explorer import STUCK, Report
from proof.going_back.explorer import Faults, GoingBack, Rules, explore, walk

TWICE = "I22: an attempt starts twice"

COPY = "a copy is made of the store"
FAILOVER = "another server takes over with the copy"
RESTORE = "the same server goes back to the copy"
SWITCH = "another server takes over with everything"
BEAT = "a beat passes"
ANEW = "starts anew, remembering nothing"


log = logging.getLogger(__name__)


def _name(value: object) -> str | None:
    """What is not as usual in a world."""
    if isinstance(value, GoingBack):
        shown = {k: v for k, v in vars(value).items() if k != "faults" and v != getattr(GoingBack(), k)}
        return "-".join([_name(value.faults) or "no-fault", *[f"{k}={v}" for k, v in shown.items()]])
    if isinstance(value, Faults):
        return "-".join(f"{k}={v}" for k, v in value._asdict().items() if v and k != "together")
    return None


def _sound(report: Report, at_least: int) -> None:
    assert report.wrong is None, "\n  ".join([report.wrong or "", *report.trace])
    assert report.states >= at_least, "the world was smaller than it is said to be"


@pytest.mark.parametrize(
    ("small", "at_least"),
    [
        (GoingBack(), 40),
        (GoingBack(faults=Faults(failovers=1)), 2_000),
        (GoingBack(faults=Faults(restores=1)), 4_000),
        (GoingBack(faults=Faults(failovers=1), retries=1, prompt=False), 2_500),
        (GoingBack(faults=Faults(restores=1), retries=1), 4_000),
        pytest.param(GoingBack(faults=Faults(failovers=1, lost=1)), 10_000, marks=pytest.mark.long),
        pytest.param(GoingBack(faults=Faults(failovers=1), slots=2), 10_000, marks=pytest.mark.long),
        (GoingBack(faults=Faults(failovers=1), memory=1), 2_000),
    ],
    ids=_name,
)
def test_every_state_keeps_the_promise_and_comes_to_rest(small: GoingBack, at_least: int) -> None:
    _sound(explore(small), at_least)


PAIRS = [
    Faults(failovers=2),
    Faults(failovers=1, restores=1),
    Faults(restores=2),
    *[Faults(**{loss: 1, other: 1}) for loss in ("failovers", "restores") for other in Faults._fields[2:8]],
]


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("faults", PAIRS, ids=_name)
def test_any_loss_together_with_any_other_fault(faults: Faults, retries: int) -> None:
    _sound(explore(GoingBack(faults=faults, retries=retries)), 10_000)


LARGE = GoingBack(
    nodes=3,
    slots=2,
    retries=1,
    faults=Faults(failovers=2, restores=1, switches=1, kills=2, freezes=2, lost=3, late=3, outages=1),
)


def _walks(small: GoingBack, seeds: range) -> None:
    for seed in seeds:
        report = walk(small, seed=seed)
        assert report.wrong is None, "\n  ".join([f"seed {seed}: {report.wrong}", *report.trace])


def test_random_walks_of_three_nodes_and_two_slots() -> None:
    _walks(LARGE, range(60))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("retries", [0, 1])
def test_many_random_walks(retries: int) -> None:
    _walks(replace(LARGE, retries=retries), range(1_000, 6_000))


@dataclass(frozen=True)
class LeftOut:
    """A rule, what happens without it, in how many steps, and how that history begins."""

    rule: str
    steps: int
    faults: Faults
    given: tuple[str, ...]
    wrong: str = TWICE
    slots: int = 1
    prompt: bool = True
    memory: int | None = None

    @property
    def is_small(self) -> bool:
        """Whether its world can be explored completely in a minute."""
        return sum(self.faults[:-1]) <= 2 and self.slots == 1

    def small(self, *, without: bool, given: bool = True) -> GoingBack:
        return GoingBack(
            slots=self.slots,
            faults=self.faults,
            rules=replace(Rules(), **{self.rule: False}) if without else Rules(),
            prompt=self.prompt,
            memory=self.memory,
            given=self.given if given else (),
        )


B_CHECKS = ("B: renew", "B: join", "B: mark")
ALL_RENEW = (BEAT, "A: renew", "B: renew")
B_ALONE = (BEAT, "B: renew")

LEFT_OUT = [
    LeftOut("claim_tests_server", 4, Faults(failovers=1), ()),
    LeftOut("claim_tests_version", 7, Faults(restores=1), ()),
    LeftOut("heal", 16, Faults(failovers=1), ()),
    LeftOut("open_on_marked", 14, Faults(failovers=1), (), prompt=False),
    LeftOut(
        "barrier",
        22,
        Faults(failovers=1, kills=1),
        ("A: is killed", *B_ALONE, *B_ALONE, BEAT, f"A: {ANEW}", "B: renew", "B: bury A's session 1", COPY, "A: begin"),
    ),
    LeftOut(
        "burial_tests_server",
        18,
        Faults(failovers=1, freezes=1),
        (COPY, "A: claim", "A: freezes", *B_ALONE, *B_ALONE, FAILOVER),
    ),
    LeftOut("refused_ends_kept", 17, Faults(failovers=1), ()),
    LeftOut(
        "late_answers_dropped",
        17,
        Faults(failovers=1, late=1),
        (COPY, "A: claim (the answer is on its way)", FAILOVER),
    ),
    LeftOut(
        "answers_dropped_from_join",
        17,
        Faults(failovers=1, late=1),
        (COPY, "A: claim (the answer is on its way)", FAILOVER),
    ),
    LeftOut(
        "lost_mark_is_seen",
        7,
        Faults(restores=1, switches=1),
        (SWITCH, BEAT, "A: renew", "A: join", COPY, "A: mark", RESTORE),
        wrong=STUCK,
    ),
    LeftOut(
        "join_again",
        20,
        Faults(failovers=1, restores=1),
        (COPY, "A: claim", "A: finish slot 1", BEAT, "A: renew", FAILOVER, *B_CHECKS, COPY),
    ),
    LeftOut("renewals_are_numbered", 9, Faults(restores=1, late=1), ()),
    LeftOut(
        "dead_session_is_sign",
        16,
        Faults(restores=1, kills=1, freezes=1),
        (COPY, "A: claim", BEAT, "A: renew", "B: is killed", "A: freezes", RESTORE),
    ),
    LeftOut(
        "doubt",
        16,
        Faults(failovers=1, kills=1),
        (COPY, "A: claim", "A: is killed", FAILOVER),
    ),
    LeftOut(
        "doubt_kept",
        23,
        Faults(failovers=1, switches=1, kills=1),
        (
            COPY,
            "A: claim",
            "A: is killed",
            FAILOVER,
            BEAT,
            *B_CHECKS,
            *B_ALONE,
            *B_ALONE,
            BEAT,
            "B: bury A's session 1",
        ),
    ),
    LeftOut(
        "passed_over_recorded",
        9,
        Faults(failovers=1, kills=1),
        (COPY, "A: claim", "A: finish slot 1", *ALL_RENEW, "B: claim", "A: is killed", FAILOVER),
        wrong=STUCK,
        slots=2,
    ),
    LeftOut(
        "strict_adoption",
        15,
        Faults(restores=1, late=1, freezes=1),
        (COPY, "A: claim (on its way)", "B: claim", *ALL_RENEW, "B: freezes"),
    ),
    LeftOut("newcomers_wait", 9, Faults(restores=1, kills=1), ()),
    LeftOut(
        "newcomers_bury_late",
        23,
        Faults(restores=1, kills=1),
        (COPY, "A: claim", "A: is killed", *B_ALONE, *B_ALONE, RESTORE),
    ),
    LeftOut("stop_beyond_memory", 20, Faults(restores=1), (), memory=1),
    LeftOut("stop_also_when_joining", 20, Faults(failovers=1), (), memory=1),
]
RULES = pytest.mark.parametrize("case", LEFT_OUT, ids=[case.rule for case in LEFT_OUT])


class TestWithoutARule:
    @RULES
    def test_the_promise_is_broken_or_a_slot_has_no_record(self, case: LeftOut) -> None:
        report = explore(case.small(without=True))
        log.info("without %s: %s\n  %s", case.rule, report.wrong, "\n  ".join(report.trace))
        assert (report.wrong, len(report.trace)) == (case.wrong, case.steps)

    @pytest.mark.parametrize("case", [case for case in LEFT_OUT if case.given], ids=lambda case: case.rule)
    def test_and_with_it_the_same_beginning_comes_to_a_good_end(self, case: LeftOut) -> None:
        _sound(explore(case.small(without=False), limit=5_000), 20)

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    @pytest.mark.parametrize("case", [case for case in LEFT_OUT if case.is_small], ids=lambda case: case.rule)
    def test_in_no_fewer_steps_whatever_the_beginning(self, case: LeftOut) -> None:
        report = explore(case.small(without=True, given=False))
        assert (report.wrong, len(report.trace)) == (case.wrong, case.steps)


def test_a_beginning_that_cannot_happen_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot happen here"):
        explore(GoingBack(given=("B: thaws",)))
