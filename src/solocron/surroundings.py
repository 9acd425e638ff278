"""The environment of this process: variables, container, terminal, and whether it may become a node."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from solocron.errors import ConfigurationError

__all__ = [
    "DEFAULT_STORE",
    "check_platform",
    "enabled",
    "has_screen",
    "in_container",
    "is_terminal",
    "namespace",
    "node_name",
    "password_command",
    "refuse_node",
    "reloader",
    "store_file",
    "store_url",
]

log = logging.getLogger("solocron")

DEFAULT_STORE = "sqlite:///solocron.db"

carries_a_run = False
"""True if this process is a child that carries out one run (`run_in="process"`); it must not become a node."""

imports_target = False
"""True while a command imports its TARGET: the module must not start a node, because the command does."""

_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off"})


def enabled(environ: Mapping[str, str] = os.environ) -> bool:
    """Read `SOLOCRON_ENABLED`: unset means on; a value that is neither on nor off is an error."""
    value = environ.get("SOLOCRON_ENABLED", "").strip().lower()
    if not value or value in _ON:
        return True
    if value in _OFF:
        return False
    raise ConfigurationError(
        f"SOLOCRON_ENABLED={value!r:.40} is neither on nor off; set it to 1 or 0. Nothing was started."
    )


def store_url(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return `SOLOCRON_STORE`, or None if it is not set."""
    return environ.get("SOLOCRON_STORE", "").strip() or None


def store_file(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return `SOLOCRON_STORE_FILE`, or None if it is not set."""
    return environ.get("SOLOCRON_STORE_FILE", "").strip() or None


def password_command(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return `SOLOCRON_PASSWORD_COMMAND`, or None if it is not set."""
    return environ.get("SOLOCRON_PASSWORD_COMMAND", "").strip() or None


def namespace(environ: Mapping[str, str] = os.environ) -> str:
    """Return `SOLOCRON_NAMESPACE`, or "default" if it is not set."""
    return environ.get("SOLOCRON_NAMESPACE", "").strip() or "default"


def in_container(environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> bool:
    """Return whether this is a container or a pod, where each replica would get a file of its own."""
    if environ.get("KUBERNETES_SERVICE_HOST") or environ.get("container"):
        return True
    return (root / ".dockerenv").exists() or (root / "run" / ".containerenv").exists()


def is_terminal() -> bool:
    """Return whether a person started this process at a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def node_name(host: str, pid: int, token: str) -> str:
    """Return a readable name, new at each start: a restarted process is another node."""
    return f"{host.partition('.')[0]}-{pid}-{token[:4]}"


def has_screen(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a window can be opened here: else a browser for the terminal would take it from the service."""
    return sys.platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def refuse_node(*, passing: bool = False) -> None:
    """Raise where an import would make this process a node.

    A single pass (`passing`) ends by itself, so a module that a command imports may do one.
    """
    if carries_a_run:
        why = "this process carries out one run of a job, and must not become a node itself"
    elif _is_spawned_and_imports():
        why = "a child process of multiprocessing imports this program again, and must not become a node itself"
    elif imports_target and not passing:
        why = "the module starts its scheduler when it is imported, which is this command's part"
    else:
        return
    raise ConfigurationError(
        f'{why}; nothing was started. Put what starts the scheduler below `if __name__ == "__main__":`.'
    )


def _is_spawned_and_imports() -> bool:
    """Return whether this is a child of multiprocessing (spawn or forkserver) before its function is called.

    Read the attribute by which multiprocessing itself refuses to start a process at such a time; there is no public
    one. `__name__ == "__mp_main__"` is visible to the program's own file only, not to the modules that it imports.
    """
    process = sys.modules.get("multiprocessing.process")
    return process is not None and getattr(process.current_process(), "_inheriting", False)


# --- servers and platforms -------------------------------------------------------------------------------------------


def reloader(environ: Mapping[str, str] = os.environ, argv: Sequence[str] = sys.argv) -> str | None:
    """Return the command whose reloader this process is, or None.

    The reloader imports the application once, serves nothing, and keeps that code whatever is edited: as a node it
    would go on with stale jobs. Its child serves, and is started anew after each edit.
    """
    by_flask = environ.get("FLASK_RUN_FROM_CLI") == "true" and environ.get("WERKZEUG_RUN_MAIN") != "true"
    if by_flask and _flask_reloads(environ):
        return "flask run"
    if argv[1:2] == ["runserver"] and "--noreload" not in argv and environ.get("RUN_MAIN") != "true":
        return "manage.py runserver"
    return None


def _flask_reloads(environ: Mapping[str, str]) -> bool:
    """Return whether the command that runs is `flask run` with a reloader, which debug mode implies."""
    click = sys.modules.get("click")
    context = None if click is None else click.get_current_context(silent=True)
    if context is None or context.info_name != "run":
        return False
    wanted = context.params.get("reload")
    return environ.get("FLASK_DEBUG", "0").lower() not in ("", "0", "false", "no") if wanted is None else bool(wanted)


_warned: set[str] = set()
"""Platforms of which this process has been warned."""


def check_platform(environ: Mapping[str, str] = os.environ) -> None:
    """Refuse a node where the process, or all of its threads, are frozen after each response; warn where it may be."""
    uwsgi = sys.modules.get("uwsgi")  # made by the server itself, and only inside of it
    if uwsgi is not None and not getattr(uwsgi, "has_threads", True):
        raise ConfigurationError(
            "this is uWSGI without threads, in which a node stands still between requests and loses its lease. Nothing "
            "was started; add --enable-threads, which uWSGI has by itself from 2.0.27 on."
        )
    if environ.get("AWS_LAMBDA_FUNCTION_NAME"):
        raise ConfigurationError(
            "this is AWS Lambda, which freezes the process after each response: a node would lose its lease in the "
            "middle of a run. Nothing was started; call scheduler.tick() from a timer instead."
        )
    always_on = environ.get("SOLOCRON_ALWAYS_ON", "").strip().lower() in _ON
    if environ.get("K_SERVICE") and not always_on and "Cloud Run" not in _warned:
        _warned.add("Cloud Run")
        log.warning(
            "this is Cloud Run, which takes the processor away between requests unless it is always allocated: a node "
            "would lose its lease. Allocate it always and set SOLOCRON_ALWAYS_ON=1, or tick from a timer",
            extra={"event": "throttled platform"},
        )
