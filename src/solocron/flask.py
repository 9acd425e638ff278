"""`Solocron(app)`: a scheduler as an extension of Flask. Every run is inside the application's context.

The node runs in a process of its own (`flask solocron run`), or with `SOLOCRON_START = "first-request"` in each process
that serves one: a master, a reloader and a shell import the application too, and serve nothing.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Unpack

from solocron.cli.host import hosted_main
from solocron.errors import ConfigurationError
from solocron.gunicorn import start_in_workers
from solocron.near import did_you_mean
from solocron.scheduler import Scheduler
from solocron.scheduler.configuration import Configuration, SchedulerOptions

if TYPE_CHECKING:
    import click
    from flask import Flask

__all__ = ["Solocron"]

OLDEST = (3, 0)
_GRACE = 25.0
_BEFORE_POOLS = 100
"""Multiprocessing ends its pools of processes at priority 15; a body that uses one shall be drained first."""
_OPTIONS = {"SOLOCRON_STORE": "store", "SOLOCRON_NAMESPACE": "namespace", "SOLOCRON_POOLS": "pools"}
_OTHERS = ("SOLOCRON_ENABLED", "SOLOCRON_MODULES", "SOLOCRON_START")
_STARTS = (None, "first-request")
_NOTHING = "Nothing was configured."

_application: Flask | None = None
"""The application that was made last in this process; in a child of `run_in="process"`, the one that its setup made."""


class Solocron(Scheduler):
    """A scheduler that is configured by a Flask application."""

    def __init__(self, app: Flask | None = None, **options: Unpack[SchedulerOptions]) -> None:
        super().__init__(**options)
        self._options = options
        self._app: Flask | None = None
        self._served_in: int | None = None
        self._serving = threading.Lock()
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Take store, namespace, pools and jobs from the application's config, and add `flask solocron`."""
        global _application
        _check_version()
        options = SchedulerOptions(**self._options)
        options.update(_read(app.config))
        start = app.config.get("SOLOCRON_START")
        if start not in _STARTS:
            raise ConfigurationError(
                f'SOLOCRON_START={start!r:.60} is not known; set "first-request", or leave it out. {_NOTHING}'
            )
        self._core.configure(Configuration.make(**options))
        self.enabled = self._core.configuration.enabled
        self.discover(*_modules(app.config))
        if self._app is None:
            self._core.wrappers.insert(0, self._in_context())
        self._app = _application = app
        app.extensions["solocron"] = self
        app.cli.add_command(self._command())
        if start == "first-request":
            start_in_workers(self)
            app.before_request(self._serve)

    def _in_context(self) -> Any:
        """Return the outermost wrapper: what the other wrappers and the factories use is the application's."""

        def in_context(run: object) -> Iterator[None]:
            assert self._app is not None
            with self._app.app_context():
                yield

        in_context.elsewhere = in_made_application  # type: ignore[attr-defined]
        return in_context

    def _serve(self) -> None:
        """Start the node with the first request of this process; a test client is not one."""
        if self._served_in == os.getpid() or (self._app is not None and self._app.testing):
            return
        with self._serving:
            if self._served_in != os.getpid():
                self.start()  # refused: each request says so, rather than the first alone
                self._served_in = os.getpid()
                self._stop_at_exit()

    def _stop_at_exit(self) -> None:
        atexit.register(self.stop, _GRACE)
        apache = sys.modules.get("mod_wsgi")  # made by the server itself, in each of its interpreters
        if apache is not None and hasattr(apache, "subscribe_shutdown"):
            # It ends a sub-interpreter only when its threads have ended, and calls the functions of atexit after that.
            apache.subscribe_shutdown(lambda event, **facts: self.stop(_GRACE))
        process = sys.modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:
            # A child that multiprocessing has forked, as a worker of granian, ends without the functions of atexit.
            from multiprocessing.util import Finalize

            Finalize(None, self.stop, args=(_GRACE,), exitpriority=_BEFORE_POOLS)

    def _command(self) -> click.Command:
        import click
        from flask.cli import with_appcontext

        def call(argv: tuple[str, ...]) -> None:
            sys.exit(hosted_main(self, argv, program="flask solocron"))

        return click.Command(
            "solocron",
            callback=with_appcontext(call),
            params=[click.Argument(["argv"], nargs=-1, type=click.UNPROCESSED)],
            help="Run a node, or look and ask: the commands of solocron for this application's scheduler.",
            add_help_option=False,
            context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        )


def in_made_application(run: object) -> Iterator[None]:
    """Wrap a run in a process of its own, in which `setup` has made the application."""
    if _application is None:
        raise ConfigurationError(
            "a process of its own has no Flask application, so the run was not begun; name what makes it: "
            'setup("shop:create_app").'
        )
    with _application.app_context():
        yield


def _read(config: Mapping[str, Any]) -> SchedulerOptions:
    """Return the options in a config; refuse a name that looks like one and is none."""
    known = (*_OPTIONS, *_OTHERS)
    for name in config:
        if name.startswith("SOLOCRON_") and name not in known:
            hint = did_you_mean(name, known, f"known are {', '.join(known)}.")
            raise ConfigurationError(f"{name} is not known in Flask's config; {hint} {_NOTHING}")
    found = SchedulerOptions()
    for name, option in _OPTIONS.items():
        if config.get(name) is not None:
            found[option] = config[name]  # type: ignore[literal-required]
    enabled = config.get("SOLOCRON_ENABLED")
    if enabled is not None:
        if not isinstance(enabled, bool):
            raise ConfigurationError(f"SOLOCRON_ENABLED={enabled!r:.60} in Flask's config is not a bool. {_NOTHING}")
        found["enabled"] = enabled
    return found


def _modules(config: Mapping[str, Any]) -> tuple[str, ...]:
    modules = config.get("SOLOCRON_MODULES", ())
    if isinstance(modules, str):
        raise ConfigurationError(
            f"SOLOCRON_MODULES must be a list of modules, not a string; did you mean [{modules!r}]? {_NOTHING}"
        )
    return tuple(modules)


def _check_version() -> None:
    found = version("flask")
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST:
        raise ConfigurationError(f"Flask {found} is too old: 3.0 or later is needed. {_NOTHING}")
