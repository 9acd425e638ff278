"""The service itself keeps every promise: an optional target, named by SOLOCRON_TEST_DYNAMODB=dynamodb://region/table.

Each test has namespaces of its own in that table; what they wrote stays there.
"""

from __future__ import annotations

import os
import secrets

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.dynamodb import DynamoStore
from solocron.stores.url import parse
from solocron.testing.conformance import Make, StoreConformance
from tests.stores.swap.breaking import break_text

URL = os.environ.get("SOLOCRON_TEST_DYNAMODB", "")
if not URL:
    pytest.skip("SOLOCRON_TEST_DYNAMODB names no table", allow_module_level=True)


class TestDynamoDBService(StoreConformance):
    @pytest.fixture
    def make(self) -> Make:
        world = secrets.token_hex(4)
        return lambda namespace="default": DynamoStore(parse(URL), namespace=f"{world}-{namespace}")

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True
