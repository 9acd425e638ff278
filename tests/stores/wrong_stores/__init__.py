"""Stores that are wrong on purpose, each in one way; the suite must notice every one of them.

Each is the memory store with one promise broken, and names the tests that must fail on it. The other way round, every
test of the suite is named by at least one wrong store: a test that nothing can fail proves nothing.
"""

from tests.stores.wrong_stores import documents, gates, house, log, races, selections
from tests.stores.wrong_stores.registry import WRONG

__all__ = ["WRONG", "documents", "gates", "house", "log", "races", "selections"]
