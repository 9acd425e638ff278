"""`Client` has the methods of all its parts."""

from __future__ import annotations

import inspect

import pytest

from solocron.client import Client
from solocron.client.backfill import Backfills
from solocron.client.commands import Commands
from solocron.client.definitions import Definitions
from solocron.client.queries import Queries
from solocron.client.restore import Restore
from solocron.stores.url import make_store


@pytest.mark.parametrize("part", [Queries, Commands, Backfills, Definitions, Restore])
def test_a_client_offers_every_public_method_of_its_parts(part: type) -> None:
    client = Client(make_store("memory://"))
    public = [name for name, _ in inspect.getmembers(part, inspect.isfunction) if not name.startswith("_")]
    assert public
    assert [getattr(client, name).__func__ for name in public] == [getattr(part, name) for name in public]
