"""Small worlds in which one kind of trouble comes every few seconds, so that two of its kind meet.

Drawn worlds have a little of everything, and a store that goes back a few times an hour. In these it goes back every
ten seconds at a lease of three: seven bugs that a thousand drawn worlds had not met were found here.
"""

from __future__ import annotations

import pytest

from proof.simulator.options import Options
from proof.simulator.world import simulate

TROUBLES = {
    "restores": {"restore": 20.0},
    "restores of a quiet fleet": {"restore": 20.0, "jobs": 2},
    "failovers": {"failover": 6.0, "jobs": 25},
    "failovers, deaths and freezes": {"failover": 8.0, "kill": 6.0, "freeze": 10.0, "jobs": 15},
    "restores, deaths, freezes and effects": {"restore": 10.0, "kill": 6.0, "freeze": 6.0, "jobs": 8, "effects": 3},
    "restores, late and lost messages, effects": {
        "restore": 12.0, "lost_reply": 0.05, "late_request": 0.05, "jobs": 8, "effects": 3,
    },
    "restores behind a broker": {"restore": 10.0, "broker": 20.0, "jobs": 6},
    "restores, drains and requests": {"restore": 12.0, "drain": 10.0, "request": 4.0, "jobs": 6},
}  # fmt: skip

FOUND = [
    ("restores", 0),
    ("restores behind a broker", 42),
    ("restores, drains and requests", 23),
    ("restores, drains and requests", 65),
    ("restores, deaths, freezes and effects", 65),
    ("failovers, deaths and freezes", 78),
    ("restores, late and lost messages, effects", 52),
]
"""Worlds in which a bug was found."""


def survives(trouble: str, seed: int) -> None:
    world = Options(seed=seed, nodes=3, jobs=5, lease=3.0, hours=0.05, locking=bool(seed % 2))
    options = world.changed(TROUBLES[trouble])
    violation = simulate(options).violation
    assert violation is None, f"{violation} ({options.command()})"


@pytest.mark.parametrize(("trouble", "seed"), FOUND)
def test_a_world_in_which_a_bug_was_found_holds(trouble: str, seed: int) -> None:
    survives(trouble, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_upon_trouble_breaks_no_promise(trouble: str, seed: int) -> None:
    survives(trouble, seed)
