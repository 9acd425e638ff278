"""The pytest plug-in: a manual clock and simulated clusters as fixtures. Loading it imports nothing of Solocron.

def test_a_digest_survives_a_dead_node(cluster):
    fleet = cluster(send_digest, nodes=3)
    fleet.run("2h")
    fleet.assert_ran("send_digest", times=2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from solocron.testing.clock import ManualClock
    from solocron.testing.cluster import Cluster

__all__ = ["cluster", "manual_clock"]


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of the published suites, so that they run under `--strict-markers`."""
    config.addinivalue_line("markers", "invariant(sentence): an invariant of Solocron that the test holds against")


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock that stands still until the test moves it, with a store and schedulers that use it."""
    from solocron.testing.clock import ManualClock

    return ManualClock()


@pytest.fixture
def cluster() -> Iterator[Callable[..., Cluster]]:
    """Make simulated clusters of your own jobs; arguments as for `solocron.testing.cluster.Cluster`."""
    from solocron.testing.cluster import Cluster

    made: list[Cluster] = []

    def make(*targets: object, **settings: Any) -> Cluster:
        made.append(Cluster(*targets, **settings))
        return made[-1]

    yield make
    for one in made:
        one.fleet.kernel.close()
