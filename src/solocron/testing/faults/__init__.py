"""The published fault suite: what a store on a server must do when the server, or the network to it, is hurt.

    class TestMyServer(StoreFaults):
        @pytest.fixture
        def victim(self, my_server):
            return MyVictim(my_server)

A `Victim` knows an empty world on a real server and the ways to hurt it: kill it, restart it, be refused by it. The
network is hurt by a `ChaosProxy`, which needs nothing but the URL. Where a store answers a lost message better than
"unknown", the class says so in `lost_reply` and `lost_request`. Stores that lock rows inherit `Locking` as well and
supply a `LockingVictim`. The suite stands beside `solocron.testing.conformance`: a store passes that one first.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

_CHAPTERS = ("network", "server", "secrets", "locking")
pytest.register_assert_rewrite("solocron.testing.conformance.kit", *(f"{__name__}.{chapter}" for chapter in _CHAPTERS))

from solocron.stores.contract import Store  # noqa: E402 - only now are the asserts of the chapters rewritten
from solocron.testing.faults.locking import Locking, LockingVictim  # noqa: E402
from solocron.testing.faults.network import NetworkFaults  # noqa: E402
from solocron.testing.faults.secrets import Secrets  # noqa: E402
from solocron.testing.faults.server import Outages  # noqa: E402
from solocron.testing.faults.victim import Victim  # noqa: E402
from solocron.testing.proxy import ChaosProxy  # noqa: E402

__all__ = ["Locking", "LockingVictim", "StoreFaults", "Victim"]


class StoreFaults(NetworkFaults, Outages, Secrets):
    """All chapters but `Locking`. Subclass it, supply `victim`."""

    @pytest.fixture
    def victim(self) -> Victim:
        """Override this: a server with an empty world, and the ways to hurt it."""
        raise NotImplementedError("supply a fixture `victim` that returns a Victim for your server")

    @pytest.fixture
    def near(self, victim: Victim) -> Iterator[Store]:
        """An opened client with nothing in between."""
        with victim.opened() as store:
            yield store

    @pytest.fixture
    def proxy(self, victim: Victim) -> Iterator[ChaosProxy]:
        """The connection of the other clients: `proxy.through(victim.url)`."""
        with ChaosProxy.for_url(victim.url) as proxy:
            yield proxy
