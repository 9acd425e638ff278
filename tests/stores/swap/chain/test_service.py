"""The services themselves keep every promise: optional targets, each named by a variable with a store's URL.

SOLOCRON_TEST_S3, _GCS, _AZURE, _FIREBASE and _KUBERNETES. Each test has namespaces of its own there; what they wrote
stays.
"""

from __future__ import annotations

import os
import secrets

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.url import make_store
from solocron.testing.conformance import Make, StoreConformance
from tests.stores.swap.breaking import break_text

VARIABLES = [f"SOLOCRON_TEST_{name}" for name in ("S3", "GCS", "AZURE", "FIREBASE", "KUBERNETES")]

if not set(VARIABLES) & set(os.environ):
    pytest.skip(f"none of {', '.join(VARIABLES)} names a service", allow_module_level=True)


class TestServices(StoreConformance):
    @pytest.fixture(params=[name for name in VARIABLES if name in os.environ])
    def make(self, request: pytest.FixtureRequest) -> Make:
        world = secrets.token_hex(4)
        url = os.environ[request.param]
        return lambda namespace="default": make_store(url, namespace=f"{world}-{namespace}")

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True
