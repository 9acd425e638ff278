"""The memory key store keeps every promise that it is the reference for."""

from __future__ import annotations

import pytest

from solocron.stores.swap.key_store import KeyLimits
from solocron.stores.swap.memory import MemoryKeys, SharedKeys
from solocron.testing.conformance import KeyStoreConformance, MakeKeys


class TestMemoryKeys(KeyStoreConformance):
    tells = True

    @pytest.fixture
    def make_keys(self) -> MakeKeys:
        shared = SharedKeys()
        limits = KeyLimits(keys=128, bytes=1_500_000, value=1_000_000) if self.tells else None
        return lambda namespace="default": MemoryKeys(shared, namespace, limits=limits, tells=self.tells)


class TestKeysThatTellLess(TestMemoryKeys):
    """Stale keys are not named, and no prefix is looked for."""

    tells = False
