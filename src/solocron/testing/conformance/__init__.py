"""The published suite: what every store must do, as tests that a store's author gets by subclassing.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def make(self, tmp_path):
            return lambda namespace="default": MyStore(tmp_path / "file", namespace=namespace)

`make()` returns a new client each time, all of one world that is fresh for each test; the suite opens and closes
them. A store whose documents can be broken from outside also overrides `corrupt`. Nothing in the suite sleeps, and
nothing depends on luck: a store that keeps its promises never fails it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

_CHAPTERS = (
    *("kit", "rivals"),
    *("documents", "due", "holding", "races", "sessions", "logbook", "poison", "telling", "keeping", "life"),
    *("placing", "gates", "key_store"),
)
pytest.register_assert_rewrite(*(f"{__name__}.{chapter}" for chapter in _CHAPTERS))

from solocron.testing.conformance.documents import Documents  # noqa: E402 - only now are its asserts rewritten
from solocron.testing.conformance.due import DueJobs  # noqa: E402
from solocron.testing.conformance.gates import Gates  # noqa: E402
from solocron.testing.conformance.holding import Holding  # noqa: E402
from solocron.testing.conformance.keeping import Keeping  # noqa: E402
from solocron.testing.conformance.key_store import KeyClients, KeyStoreConformance, MakeKeys  # noqa: E402
from solocron.testing.conformance.kit import Clients, Make  # noqa: E402
from solocron.testing.conformance.life import WholeLife  # noqa: E402
from solocron.testing.conformance.logbook import Logbook  # noqa: E402
from solocron.testing.conformance.placing import Placing  # noqa: E402
from solocron.testing.conformance.poison import Poison  # noqa: E402
from solocron.testing.conformance.races import Races  # noqa: E402
from solocron.testing.conformance.sessions import Sessions  # noqa: E402
from solocron.testing.conformance.telling import Telling  # noqa: E402

__all__ = ["Clients", "KeyClients", "KeyStoreConformance", "Make", "MakeKeys", "StoreConformance"]


class StoreConformance(
    Documents, DueJobs, Holding, Races, Sessions, Logbook, Poison, Telling, Keeping, WholeLife, Placing, Gates
):
    """All chapters. Subclass it, supply `make`."""

    @pytest.fixture
    def make(self) -> Make:
        """Override this: a function that makes a new client of the test's own world."""
        raise NotImplementedError("supply a fixture `make` that returns a function making clients of your store")

    @pytest.fixture
    def clients(self, make: Make) -> Iterator[Clients]:
        """The clients of one test."""
        clients = Clients(make)
        yield clients
        clients.close()
