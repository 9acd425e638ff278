"""One world for the tests of a file that only look."""

from __future__ import annotations

import pytest

from tests.unit.service.kit import World
from tests.unit.service.kit import world as open_world


@pytest.fixture(scope="module")
def world() -> World:
    return open_world()


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first page wait for the count of a day, however busy this machine is."""
    monkeypatch.setattr("solocron.service.board.glance._WAITS", 60.0)
