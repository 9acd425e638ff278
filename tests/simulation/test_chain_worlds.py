"""Worlds on a commit chain: frozen nodes wake to find numbers deleted, replies are lost, roots are left half made."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from proof.simulator.options import Options, draw
from proof.simulator.world import simulate
from solocron.testing.simulation.chain_wire import ChainDatabase

FAULTS = {
    "lost_reply": 0.05,
    "lost_request": 0.03,
    "late_request": 0.02,
    "repeated_request": 0.03,
    "serialization": 0.03,
    "kill": 30.0,
    "freeze": 12.0,
}


def _options(seed: int, hours: float = 0.006) -> Options:
    return Options(seed=seed, nodes=3, jobs=4, lease=3.0, hours=hours, chain=True, request=6.0).changed(FAULTS)


def test_every_invariant_holds_while_numbers_are_deleted_under_frozen_nodes() -> None:
    deleted: list[str] = []
    real = ChainDatabase.delete

    def delete(self: ChainDatabase, name: str) -> None:
        deleted.append(name)
        real(self, name)

    with patch.object(ChainDatabase, "delete", delete):
        report = simulate(_options(1))
    assert report.violation is None, f"{report.violation}\n{_options(1).command()}"
    assert report.runs > 20
    assert sum("/c/" in name for name in deleted) > 20


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_it_holds_in_more_worlds(seed: int) -> None:
    report = simulate(_options(seed, 0.1))
    assert report.violation is None, f"{report.violation}\n{_options(seed, 0.1).command()}"


def test_one_seed_is_one_history() -> None:
    assert simulate(_options(3, 0.002)).digest == simulate(_options(3, 0.002)).digest


def test_some_worlds_of_a_campaign_are_on_a_chain() -> None:
    drawn = [draw(seed) for seed in range(200)]
    on_chain = [options for options in drawn if options.chain]
    assert 5 < len(on_chain) < 40
    assert not any(options.goes_back or options.keys for options in on_chain)
