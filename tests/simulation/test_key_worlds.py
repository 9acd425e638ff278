"""Worlds on a map of keys: the shipped code of the swap family, with lost replies, late requests and conflicts."""

from __future__ import annotations

from proof.simulator.options import Options, draw
from proof.simulator.world import simulate

FAULTS = {"lost_reply": 0.05, "lost_request": 0.03, "late_request": 0.02, "serialization": 0.05, "kill": 30.0}


def _options(seed: int, hours: float = 0.04) -> Options:
    return Options(seed=seed, nodes=3, jobs=4, lease=3.0, hours=hours, keys=True, request=6.0).changed(FAULTS)


def test_every_invariant_holds_under_lost_replies_and_conflicts() -> None:
    report = simulate(_options(1))
    assert report.violation is None, f"{report.violation}\n{_options(1).command()}"
    assert all(report.faults[name] for name in ("lost_reply", "late_request", "serialization"))
    assert report.runs > 20


def test_one_seed_is_one_history() -> None:
    assert simulate(_options(3, 0.01)).digest == simulate(_options(3, 0.01)).digest


def test_some_worlds_of_a_campaign_are_on_keys() -> None:
    drawn = [draw(seed) for seed in range(200)]
    on_keys = [options for options in drawn if options.keys]
    assert 5 < len(on_keys) < 40
    assert not any(options.goes_back for options in on_keys)
