"""The command line as a function, away from the machine's own store and folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from solocron.cli import main
from tests.unit.cli.kit import Answer, Shop
from tests.unit.cli.kit import shop as open_shop


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of its own, no store in the environment, and no container to be careful about."""
    monkeypatch.chdir(tmp_path)
    for name in ("SOLOCRON_STORE", "SOLOCRON_NAMESPACE", "SOLOCRON_ENABLED", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("solocron.surroundings.in_container", lambda: False)
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    def call(*argv: str) -> Answer:
        capsys.readouterr()
        code = main(argv)
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture
def shop() -> Shop:
    return open_shop()
