"""Fleets on a SQLite file of their own, ended with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from solocron.testing.fleet import Fleet

MakeFleet = Callable[..., Fleet]


@pytest.fixture
def make_fleet(tmp_path: Path) -> Iterator[MakeFleet]:
    """Make a fleet for these jobs; its store is a new SQLite file unless a URL is given."""
    with ExitStack() as stack:

        def make(*targets: str, store: str | None = None, **options: Any) -> Fleet:
            url = store or f"sqlite:///{tmp_path / 'store.db'}"
            return stack.enter_context(Fleet(targets, store=url, folder=tmp_path, **options))

        yield make
