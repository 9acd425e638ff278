"""The long gate's script: it knows what it proved, and says what is missing."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter

from scripts import proof
from solocron.simulator.campaign import INVARIANTS, Summary
from solocron.simulator.faults import Options
from solocron.simulator.world import Report

PAGE = f"before\n{proof.BEGIN}\nold figures\n{proof.END}\nafter"


def told(lease: float, **more: object) -> dict[str, object]:
    options = Options(seed=1, lease=lease, hours=1.0)
    return Report(options=options, hours=20.0, slots=300, checked=Counter(INVARIANTS)).to_json() | more


def summary(*worlds: dict[str, object]) -> Summary:
    made = Summary()
    for world in worlds:
        made.add(world)
    return made


def test_every_place_that_names_the_code_exists() -> None:
    assert [place for place in proof.PROVED if not (proof.PACKAGE / place).exists()] == []


def test_what_the_gate_asks_for_and_has_not_got_is_named() -> None:
    missing = proof._missing(summary(told(15.0), told(1800.0, violation="I1: twice", tail=[])))
    assert missing[:3] == ["2 seeds of 1000", "600 slots of 1000000", "40 simulated hours of 10000"]
    assert "seed 1: I1: twice" in missing


def test_the_report_shows_hours_and_slots_by_lease_and_keeps_the_rest_of_the_page() -> None:
    twice = Summary()
    for _ in range(2):  # as ranges of seeds are added up
        twice.merge(summary(told(15.0), told(1800.0), told(15.0)).to_json())
    page = proof._written(PAGE, twice, ["too little"], Namespace(nodes=5, hours=0.25))
    assert page.startswith("before\n")
    assert page.endswith("\nafter")
    assert "old figures" not in page
    assert "The gate is not met yet: too little." in page
    assert "| 15 s | 4 | 80 | 1,200 |" in page
    assert "| 1800 s | 2 | 40 | 600 |" in page
