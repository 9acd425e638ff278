"""Processes that must not become a node, or had better not: reloaders, Lambda, Cloud Run."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import click
import pytest
from flask.cli import run_command

from solocron import ConfigurationError, Scheduler, surroundings


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler("memory://", enabled=True)
    made.every("1d", name="job")(lambda: None)
    yield made
    made.stop("5s")


@pytest.mark.parametrize(
    ("argv", "environ", "found"),
    [
        (["run", "--debug"], {}, "flask run"),
        (["run", "--reload"], {}, "flask run"),
        (["run", "--debug"], {"WERKZEUG_RUN_MAIN": "true"}, None),
        (["run", "--debug", "--no-reload"], {}, None),
        (["run"], {}, None),
    ],
)
def test_the_reloader_of_flask_is_told_from_the_process_that_serves(
    argv: list[str], environ: dict[str, str], found: str | None
) -> None:
    arguments = [word for word in argv[1:] if word != "--debug"]
    debug = {"FLASK_DEBUG": "1"} if "--debug" in argv else {}
    with run_command.make_context("run", arguments).scope():
        assert surroundings.reloader({"FLASK_RUN_FROM_CLI": "true", **debug, **environ}, ["flask", *argv]) == found


def test_a_command_of_flask_that_serves_nothing_is_no_reloader() -> None:
    """`flask --debug solocron run` is a node, although debug mode is on."""
    environ = {"FLASK_RUN_FROM_CLI": "true", "FLASK_DEBUG": "1"}
    with click.Context(click.Command("solocron"), info_name="solocron").scope():
        assert surroundings.reloader(environ, ["flask", "--debug", "solocron", "run"]) is None
    assert surroundings.reloader(environ, ["flask", "shell"]) is None


@pytest.mark.parametrize(
    ("argv", "environ", "found"),
    [
        (["manage.py", "runserver"], {}, "manage.py runserver"),
        (["manage.py", "runserver", "8001"], {"RUN_MAIN": "true"}, None),
        (["manage.py", "runserver", "--noreload"], {}, None),
        (["manage.py", "migrate"], {}, None),
        (["manage.py"], {}, None),
    ],
)
def test_the_reloader_of_django_is_told_from_the_process_that_serves(
    argv: list[str], environ: dict[str, str], found: str | None
) -> None:
    assert surroundings.reloader(environ, argv) == found


def test_in_a_reloader_nothing_starts_and_the_log_says_so(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(surroundings, "reloader", lambda: "flask run")
    with caplog.at_level(logging.INFO, "solocron"):
        scheduler.start()
    assert not scheduler.health().alive
    assert caplog.messages == ["no node is started in the reloader of `flask run`: its child, which serves, has one"]


def test_on_lambda_a_node_is_refused_and_a_tick_is_not(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "nightly")
    with pytest.raises(ConfigurationError, match=r"freezes the process.*Nothing was started; call scheduler\.tick\(\)"):
        scheduler.start()
    assert not scheduler.health().alive
    assert scheduler.tick() == []


@pytest.mark.parametrize("threads", [0, 1])
def test_in_uwsgi_without_threads_a_node_is_refused(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """It stood still between requests: two silent nodes, no run, and a lost lease with each request."""
    monkeypatch.setitem(sys.modules, "uwsgi", SimpleNamespace(has_threads=threads))
    if not threads:
        with pytest.raises(
            ConfigurationError, match=r"uWSGI without threads.*add --enable-threads, which .* from 2\.0\.27 on"
        ):
            scheduler.start()
    else:
        scheduler.start()
    assert scheduler.health().alive == bool(threads)


def test_on_cloud_run_a_node_is_warned_of_once_unless_its_processor_is_always_there(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(surroundings, "_warned", set())
    monkeypatch.setenv("K_SERVICE", "shop")
    monkeypatch.setenv("SOLOCRON_ALWAYS_ON", "1")
    with caplog.at_level(logging.WARNING, "solocron"), scheduler:
        assert caplog.text == ""
    monkeypatch.delenv("SOLOCRON_ALWAYS_ON")
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "solocron"), scheduler:
            assert scheduler.health().alive
    assert caplog.text.count("this is Cloud Run") == 1
