"""The command line as a function, away from the machine's own store and folder."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from solocron import Scheduler
from solocron.cli import main
from tests.unit.cli.kit import Answer, Cli, Shop, Started, Write
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
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*argv: str) -> Answer:
        capsys.readouterr()
        code = main(argv)
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture
def shop() -> Shop:
    return open_shop()


@pytest.fixture(autouse=True)
def modules_as_before() -> Iterator[None]:
    """What a target put into this process is taken out again."""
    path = list(sys.path)
    yield
    for name in [name for name in sys.modules if name.startswith(("shop_", "store_"))]:
        del sys.modules[name]
    sys.path[:] = path


@pytest.fixture
def write(elsewhere: Path) -> Write:
    """Write a file of a user's program."""

    def put(name: str, content: str) -> Path:
        file = elsewhere / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(content))
        return file

    return put


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The schedulers that `run` would have started, and their grace."""
    found: Started = []
    monkeypatch.setattr(
        "solocron.process.run_until_signalled", lambda scheduler, grace: found.append((scheduler, grace))
    )
    return found


@pytest.fixture
def held() -> Iterator[Callable[..., tuple[str, Scheduler]]]:
    """A run in a thread that ignores cancellation until the test is over."""
    begun, end = threading.Event(), threading.Event()
    schedulers: list[Scheduler] = []

    def start(url: str, **options: object) -> tuple[str, Scheduler]:
        scheduler = Scheduler(url, node="kitchen")
        schedulers.append(scheduler)

        @scheduler.every("1000d", name="stubborn", **options)
        def stubborn() -> None:
            begun.set()
            assert end.wait(60)

        scheduler.start()
        run = scheduler.trigger("stubborn")
        assert begun.wait(60)
        return run, scheduler

    yield start
    end.set()
    for scheduler in schedulers:
        scheduler.stop()
