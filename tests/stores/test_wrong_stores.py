"""The suite is worth its name: each wrong store fails it, and no test is there that nothing can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from solocron.errors import StoreError
from solocron.stores.memory import MemoryStore, World
from solocron.testing.conformance import Clients, StoreConformance, kit, rivals
from tests.stores.memory import test_conformance
from tests.stores.wrong_stores import WRONG

ROOT = Path(__file__).parents[2]
CASES = [pytest.param(store, test, id=f"{store.__name__}-{test}") for store, tests in WRONG.items() for test in tests]
FAILURES = (AssertionError, pytest.fail.Exception, StoreError, ValueError)
"""How a test fails: an assertion, or the error of the store itself."""


@pytest.mark.parametrize(("store", "test"), CASES)
def test_a_wrong_store_fails(store: type[MemoryStore], test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "LONG", 0.3)
    monkeypatch.setattr(rivals, "PATIENCE", 10.0)  # the memory store locks nothing: its rivals always get through
    world = World()
    clients = Clients(lambda namespace="default": store(namespace=namespace, world=world))
    try:
        with pytest.raises(FAILURES):
            getattr(test_conformance.TestMemory(), test)(clients)
    except pytest.skip.Exception as skipped:
        pytest.fail(f"the test did not look: {skipped}")


def test_every_test_of_the_suite_can_fail() -> None:
    of_the_suite = {name for name in dir(StoreConformance) if name.startswith("test_")}
    named = {test for tests in WRONG.values() for test in tests}
    assert named == of_the_suite


def test_the_author_of_a_store_learns_by_subclassing(tmp_path: Path) -> None:
    """As an author sees it: a class, a fixture, and pytest names the promise that is broken."""
    (tmp_path / "test_mine.py").write_text(
        """
import pytest
from solocron.stores.memory import World
from solocron.testing.conformance import StoreConformance
from tests.stores.wrong_stores.selections import NewestFirst

class TestMine(StoreConformance):
    @pytest.fixture
    def make(self):
        world = World()
        return lambda namespace="default": NewestFirst(namespace=namespace, world=world)
"""
    )
    seen = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "due", "--rootdir", tmp_path, tmp_path],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert seen.returncode == 1, seen.stdout + seen.stderr
    assert "FAILED test_mine.py::TestMine::test_due_jobs_come_oldest_first_up_to_the_limit" in seen.stdout
    assert "test_next_due_can_be_asked_for_alone" not in seen.stdout
    assert "assert ['j" in seen.stdout  # the asserts of the suite tell what they saw
