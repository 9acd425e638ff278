"""`scheduler.logs()` for programs that configured nothing, and the records as structlog shows them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from solocron import ConfigurationError, Scheduler


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The logger of Solocron, as a program has it that configured nothing."""
    logger = logging.getLogger("solocron")
    level, logger.handlers = logger.level, []
    yield logger
    logger.handlers = []
    logger.setLevel(level)


def ran(scheduler: Scheduler) -> None:
    scheduler.every("365d", name="job")(lambda: None)
    with scheduler:
        scheduler.wait(scheduler.trigger("job"), "10s")


def test_a_program_that_configured_nothing_gets_lines_on_stderr(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # those of pytest
    monkeypatch.setenv("SOLOCRON_LOG", "json")
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.logs()
    ran(scheduler)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (finished,) = [line for line in lines if line.get("event") == "finished"]
    assert (finished["job"], finished["outcome"], finished["level"]) == ("job", "succeeded", "info")


def test_a_program_with_a_handler_keeps_it(logger: logging.Logger) -> None:
    logger.addHandler(own := logging.NullHandler())
    Scheduler("memory://", enabled=True).logs("json", "debug")
    assert (logger.handlers, logger.level) == ([own], logging.NOTSET)


def test_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler("memory://", enabled=True)
    with pytest.raises(ConfigurationError, match=r"format='xml' is not known; choose text or json\. Nothing was"):
        scheduler.logs("xml")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="level='loud' is not known"):
        scheduler.logs(level="loud")
    monkeypatch.setenv("SOLOCRON_LOG", "xml")
    with pytest.raises(ConfigurationError, match="SOLOCRON_LOG='xml' is not known"):
        scheduler.logs()


def test_structlog_shows_every_fact_of_a_record(logger: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder()], processor=structlog.processors.JSONRenderer(default=str)
        )
    )
    logger.addHandler(handler)
    logger.setLevel("INFO")
    ran(Scheduler("memory://", enabled=True))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (finished,) = [line for line in lines if "outcome" in line]
    assert {"job": "job", "attempt": 1, "outcome": "succeeded", "final": True}.items() <= finished.items()
