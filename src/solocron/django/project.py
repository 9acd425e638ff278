"""The scheduler of a project: made from the setting at its first use, with the jobs of every app."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from django.apps import apps
from django.utils.module_loading import import_string, module_has_submodule

from solocron.django.connections import around_run, close_connections
from solocron.django.database import in_tests, is_in_memory, url_of
from solocron.django.settings import ProjectSettings, read_settings
from solocron.errors import ConfigurationError, SolocronError
from solocron.jobs.discovery import discover
from solocron.jobs.registry import Registry
from solocron.scheduler import Scheduler
from solocron.scheduler.configuration import Configuration, SchedulerOptions
from solocron.stores.url import Secret

__all__ = [
    "FailedModule",
    "ProjectScheduler",
    "SchedulerProxy",
    "current",
    "failed_modules",
    "forget",
    "load_jobs",
    "releasing",
]

log = logging.getLogger("solocron")


class ProjectScheduler(Scheduler):
    """The scheduler of a Django project."""

    project: ProjectSettings

    def start(self) -> None:
        """Run a node in the background of this process; refused while a test runner is at work."""
        if in_tests():
            raise ConfigurationError(
                "this is a test runner, whose transactions no node could see; nothing was started. Call "
                "solocron.django.testing.run_now(job) instead."
            )
        super().start()


class SchedulerProxy:
    """Stands for the scheduler of the project, which other modules may import before there are settings."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(current(), name)
        return _released(found) if callable(found) and in_tests() else found

    def __repr__(self) -> str:
        return "<the scheduler of this Django project>"


@dataclass(frozen=True, slots=True)
class FailedModule:
    """A module of jobs that cannot be used."""

    module: str
    error: Exception

    @property
    def sentence(self) -> str:
        """Return what happened, for people."""
        cause = str(self.error) if isinstance(self.error, SolocronError) else repr(self.error)
        return f"{self.module}: {cause}"


_mutex = threading.RLock()
_made: ProjectScheduler | None = None
_modules: list[ModuleType] = []
_failed: list[FailedModule] = []
_loaded = False


def load_jobs() -> None:
    """Import the modules of jobs of every app; those that fail are kept in mind."""
    global _loaded
    with _mutex:
        _modules.clear()
        _failed.clear()
        found = _settings_or_none()
        wanted = () if found is None else found.modules
        for config in apps.get_app_configs():
            for name in wanted:
                if module_has_submodule(config.module, name):
                    _load(f"{config.name}.{name}")
        _loaded = True
        if _made is not None:  # one of the modules has used the scheduler to declare its jobs
            _made.discover(*_modules)
        elif found is not None and found.carriers is not None and not _failed:
            current()  # a worker of the queue needs the carrier's task, and uses nothing else of ours


def _settings_or_none() -> ProjectSettings | None:
    """Return the setting; None if it cannot be read, which the system checks tell."""
    try:
        return read_settings()
    except ConfigurationError:
        return None


def _load(name: str) -> None:
    """Import a module, and try its jobs together with those that are known."""
    try:
        module = import_module(name)
        discover(trial(), module)
    except Exception as error:  # noqa: BLE001 - whatever a module of the user's raises is told by the checks
        log.error("the jobs of %s cannot be used: %r", name, error, extra={"event": "jobs failed"})
        _failed.append(FailedModule(name, error))
    else:
        _modules.append(module)


def trial() -> Registry:
    """Return a registry with the jobs of all modules that are known to be good."""
    made = Registry()
    for module in _modules:
        discover(made, module)
    return made


def failed_modules() -> tuple[FailedModule, ...]:
    """Return the modules that cannot be used."""
    return tuple(_failed)


def current() -> ProjectScheduler:
    """Return the scheduler; its store follows the database, which a test runner renames."""
    global _made
    with _mutex:
        if _failed:
            raise ConfigurationError(f"{_failed[0].sentence} No job of this project can be used until that is mended.")
        if _made is None:
            _made = _make()
        _follow_database(_made)
        return _made


@contextmanager
def releasing() -> Iterator[ProjectScheduler]:
    """Lend the scheduler; in a test its connections end afterwards, or the runner could not drop its database."""
    found = current()
    try:
        yield found
    finally:
        if in_tests():
            found._core.store.close()


def _released(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with releasing():
            return method(*args, **kwargs)

    return call


def forget() -> None:
    """Drop the scheduler: the next use makes one from the setting as it is then."""
    global _made
    with _mutex:
        before, _made = _made, None
    if before is not None:
        before.stop("5s")


def _make() -> ProjectScheduler:
    found = read_settings()
    options = SchedulerOptions(**found.options)
    options["store"] = found.url if found.alias is None else url_of(found.alias)
    made = ProjectScheduler(**options)
    made.project = found
    made.setup("solocron.django.boot:boot")
    core = made._core
    core.wrappers.append(around_run)
    core.retiring.append(close_connections)
    if found.carriers is not None and not (found.alias is not None and is_in_memory(found.alias)):
        import_string(found.carriers)(made)
    if _loaded:
        made.discover(*_modules)
    return made


def _follow_database(made: ProjectScheduler) -> None:
    core, alias = made._core, made.project.alias
    if alias is None or core.alive:
        return
    now, before = Secret(url_of(alias)), core.configuration
    if isinstance(before.store, Secret) and before.store != now:
        core.configure(_elsewhere(before, now))


def _elsewhere(configuration: Configuration, store: Secret) -> Configuration:
    return replace(configuration, store=store, store_named=True)
