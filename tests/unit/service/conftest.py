"""One world for the tests of a file that only look."""

from __future__ import annotations

import pytest

from tests.unit.service.kit import World
from tests.unit.service.kit import world as open_world


@pytest.fixture(scope="module")
def world() -> World:
    return open_world()
