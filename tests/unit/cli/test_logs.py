"""Log lines on stderr: one event, one line, whatever a job wrote into it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from solocron import Scheduler
from solocron.cli.host import hosted_main
from solocron.telemetry.records import logging_to_stderr
from tests.unit.cli.kit import DUE, Cli, Write


def test_log_lines_as_json_carry_the_facts_and_escape_control_characters(cli: Cli, write: Write) -> None:
    write("shop_x.py", DUE.format(name="x", body="raise ValueError('a' + chr(27) + chr(10) + 'b')"))
    answer = cli("tick", "shop_x", "--json", "--log-format", "json")
    lines = [json.loads(line) for line in answer.err.splitlines()]
    (finished,) = [line for line in lines if line.get("event") == "finished"]
    assert (finished["level"], finished["job"], finished["outcome"]) == ("error", "work", "failed")
    assert finished["time"].endswith("Z")
    assert {"message", "logger", "slot", "run", "attempt", "node", "fence"} <= set(finished)
    assert "\x1b" not in answer.err


def test_a_text_log_line_cannot_be_forged(cli: Cli, write: Write) -> None:
    body = "raise ValueError(chr(10) + '2026-01-01T00:00:00.000Z ERROR   all is lost' + chr(27))"
    write("shop_y.py", DUE.format(name="y", body=body))
    answer = cli("tick", "shop_y")
    assert "\x1b" not in answer.err
    assert not [line for line in answer.err.splitlines() if line.startswith("2026-01-01")]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_stays_with_its_line(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr(form, "info"):
        try:
            raise OSError("no\x07paper")
        except OSError:
            logging.getLogger("shop").exception("it broke", extra={"job": "invoices"})
    lines = capsys.readouterr().err.splitlines()
    if form == "json":
        (line,) = map(json.loads, lines)
        assert (line["job"], line["logger"]) == ("invoices", "shop")
        assert line["exception"].endswith("OSError: no\x07paper")
    else:
        assert lines[0].endswith("ERROR   shop: it broke")
        assert lines[-1] == r"    OSError: no\x07paper"
        assert all(line.startswith("    ") for line in lines[1:])


def test_the_log_level_is_a_choice_and_logging_is_left_as_it_was(cli: Cli, write: Write) -> None:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    write("shop_z.py", DUE.format(name="z", body="pass"))
    assert cli("tick", "shop_z", "--log-level", "error").err == ""
    write("shop_zz.py", DUE.format(name="zz", body="pass"))
    assert " DEBUG   a body started [job=work" in cli("tick", "shop_zz", "--log-level", "debug").err
    assert (logging.getLogger().handlers[:], logging.getLogger().level) == before


def test_an_application_that_configured_logging_keeps_it_unless_a_flag_asks_for_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under Django's LOGGING each line of `manage.py solocron run` was written twice."""
    for name in (None, "solocron"):  # those of pytest, and what other tests may have left
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}")
    scheduler.every("1d", name="work")(lambda: None)

    def lines(*flags: str) -> str:
        assert hosted_main(scheduler, ["tick", *flags], program="manage.py solocron") == 0
        return capsys.readouterr().err

    assert "INFO    a node has drained" in lines(), "it configured nothing"
    logging.getLogger().addHandler(logging.NullHandler())
    assert "INFO" not in lines()
    assert "INFO    a node has drained" in lines("--log-level", "info")
    assert '"level": "info"' in lines("--log-format", "json")
