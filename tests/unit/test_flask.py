"""`solocron.flask`: config, application context, the command, and where a node is started."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask, current_app, g

from solocron import ConfigurationError, Run, gunicorn
from solocron.flask import Solocron
from solocron.scheduler.hooks import core_of

torn_down: list[object] = []


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SOLOCRON_ENABLED", raising=False)
    yield
    torn_down.clear()
    gunicorn._asked.clear()


@pytest.fixture
def solo(tmp_path: Path) -> Iterator[Solocron]:
    made = Solocron()

    @made.every("1d")
    def hello(run: Run) -> str:
        g.run = run.id
        return current_app.name

    yield made
    made.stop("5s")


def application(folder: Path, **config: Any) -> Flask:
    app = Flask("shop")
    app.config["SOLOCRON_STORE"] = f"sqlite:///{folder / 'jobs.db'}"
    app.config.update({f"SOLOCRON_{name.upper()}": value for name, value in config.items()})
    app.add_url_rule("/", view_func=lambda: "served")

    @app.teardown_appcontext
    def tear_down(error: BaseException | None) -> None:
        torn_down.append(g.get("run"))

    return app


def test_a_run_is_inside_the_context_of_the_application_and_its_teardown_functions_run(
    solo: Solocron, tmp_path: Path
) -> None:
    app = application(tmp_path, namespace="shop")
    outside: list[str] = []

    @solo.around
    def wrapper(run: Run) -> Iterator[None]:
        outside.append(current_app.name)
        yield

    solo.init_app(app)
    assert solo.run_now("hello") == "shop"
    assert outside == ["shop"], "the context is the outermost"
    assert torn_down == [run.run for run in solo.runs()]
    assert core_of(solo).store.namespace == "shop"
    assert app.extensions["solocron"] is solo


def test_the_config_names_pools_and_modules_and_switches_off(solo: Solocron, tmp_path: Path) -> None:
    solo.init_app(
        application(tmp_path, pools=("web",), enabled=False, modules=["tests.unit.face.sample_jobs.deeper.more"])
    )
    assert core_of(solo).settings.pools == frozenset({"web"})
    assert not solo.enabled
    assert "Reports.static" in solo.registry.jobs


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"namespaces": "x"}, "SOLOCRON_NAMESPACES is not known in Flask's config; did you mean 'SOLOCRON_NAMESPACE'"),
        ({"start": "import"}, "SOLOCRON_START='import' is not known"),
        ({"modules": "shop.jobs"}, r"did you mean \['shop.jobs'\]\?"),
        ({"enabled": "no"}, "SOLOCRON_ENABLED='no' in Flask's config is not a bool"),
    ],
)
def test_a_wrong_config_is_refused(solo: Solocron, tmp_path: Path, config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        solo.init_app(application(tmp_path, **config))


def test_a_flask_that_is_too_old_is_one_sentence(
    solo: Solocron, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solocron.flask.version", lambda name: "2.3.3")
    with pytest.raises(ConfigurationError, match=r"Flask 2\.3\.3 is too old: 3\.0 or later is needed\. Nothing was"):
        solo.init_app(application(tmp_path))


def test_the_command_line_is_that_of_the_applications_scheduler(
    solo: Solocron, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = application(tmp_path)
    solo.init_app(app)

    def call(*argv: str) -> tuple[int, str, str]:
        result = app.test_cli_runner().invoke(args=["solocron", *argv])
        return result.exit_code, result.stdout, result.stderr

    code, _, err = call("status")
    assert (code, "or start the first node: flask solocron run.\n" in err) == (3, True), (code, err)
    found = call("doctor")[1]
    assert "-> flask solocron run, or correct --store" in found
    assert "none was given" not in found, "the application has named its store"
    assert call("tick")[0] == 0
    code, out, _ = call("jobs", "--json")
    assert (code, [job["name"] for job in json.loads(out)]) == (0, ["hello"])
    shown = call("tick", "--help")[1]
    assert shown.startswith("usage: flask solocron tick [-h] [--store URL]")
    assert ("the store (default: the application's)" in shown, "solocron.db" in shown) == (True, False), shown
    code, _, err = call("trigger", "helo")
    assert (code, "Did you mean 'hello'?" in err) == (3, True), err
    code, _, err = call("rnu")
    assert code == 2
    assert "flask solocron: there is no command 'rnu'; did you mean 'run'?" in err


def test_only_with_a_wish_a_request_starts_a_node_and_a_test_client_never(solo: Solocron, tmp_path: Path) -> None:
    app = application(tmp_path, start="first-request")
    solo.init_app(app)
    app.testing = True
    assert app.test_client().get("/").text == "served"
    assert not solo.health().alive
    app.testing = False
    assert app.test_client().get("/").text == "served"
    assert solo.health().alive
    solo.stop("5s")
    app.test_client().get("/")
    assert not solo.health().alive, "a request that comes while the process ends does not start it again"


def test_in_mod_wsgi_the_node_drains_when_the_process_is_told_to_stop(
    solo: Solocron, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sub-interpreters end without atexit; `tests/e2e/test_mod_wsgi.py` has a real Apache."""
    told: list[Any] = []
    monkeypatch.setitem(sys.modules, "mod_wsgi", SimpleNamespace(subscribe_shutdown=told.append))
    app = application(tmp_path, start="first-request")
    solo.init_app(app)
    app.test_client().get("/")
    assert solo.health().alive
    (stop,) = told
    stop("process_stopping", shutdown_reason="shutdown_signal")
    assert not solo.health().alive
    assert solo.nodes() == []


def test_where_no_node_can_be_each_request_says_so(
    solo: Solocron, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request failed, the others were served, and no job ever ran."""
    app = application(tmp_path, start="first-request")
    solo.init_app(app)
    app.config["PROPAGATE_EXCEPTIONS"] = True
    monkeypatch.setitem(sys.modules, "uwsgi", SimpleNamespace(has_threads=0))
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="uWSGI without threads"):
            app.test_client().get("/")
    monkeypatch.setitem(sys.modules, "uwsgi", SimpleNamespace(has_threads=1))
    assert app.test_client().get("/").text == "served"
    assert solo.health().alive


def test_without_a_wish_nothing_starts(solo: Solocron, tmp_path: Path) -> None:
    app = application(tmp_path)
    solo.init_app(app)
    app.test_client().get("/")
    gunicorn.post_worker_init(SimpleNamespace())
    assert not solo.health().alive


def test_the_hooks_of_gunicorn_say_so_where_no_scheduler_asks(caplog: pytest.LogCaptureFixture) -> None:
    gunicorn.post_worker_init(SimpleNamespace())
    assert "started no node: no scheduler asked for it. Set SOLOCRON_START" in caplog.text


def test_the_hooks_of_gunicorn_start_and_drain_what_asks(solo: Solocron, tmp_path: Path) -> None:
    solo.init_app(application(tmp_path, start="first-request"))
    gunicorn.post_worker_init(SimpleNamespace())
    assert solo.health().alive
    gunicorn.worker_exit(None, SimpleNamespace(cfg=SimpleNamespace(graceful_timeout=30)))
    assert not solo.health().alive
    assert solo.nodes() == []


def test_a_process_of_its_own_without_an_application_says_how_to_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.flask._application", None)
    from solocron.flask import in_made_application

    with pytest.raises(ConfigurationError, match=r'setup\("shop:create_app"\)'):
        next(in_made_application(None))  # type: ignore[call-overload]
