"""The setting `SOLOCRON`, read and checked: one dict, whose unknown keys are mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from solocron import surroundings
from solocron.errors import ConfigurationError
from solocron.near import did_you_mean
from solocron.scheduler.configuration import SchedulerOptions

__all__ = ["KEYS", "ProjectSettings", "read_settings"]

_OPTIONS = {
    "NAMESPACE": "namespace",
    "POOLS": "pools",
    "LEASE": "lease",
    "MAX_RUNNING": "max_running",
    "REVISION": "revision",
    "ENABLED": "enabled",
}
KEYS = ("STORE", *_OPTIONS, "MODULES", "CARRIERS", "SETUP", "DASHBOARD", "AUTHORIZE")
_DASHBOARD = ("read_only", "edit", "values")
_NOTHING = "Nothing was started."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """The settings of a project."""

    alias: str | None
    """The database of Django's that is the store; None if it is named by a URL."""
    url: str | None
    """The URL of the store; None if a database of Django's is the store, or if the environment names one."""
    options: SchedulerOptions
    modules: tuple[str, ...] = ("jobs",)
    carriers: str | None = None
    """Path of a function that names carriers of the scheduler that it gets."""
    setup: str | None = None
    """Path of a function that is called in processes of Solocron's own, after `django.setup`."""
    dashboard: Mapping[str, Any] = field(default_factory=dict)
    authorize: str | None = None
    """Path of a function that says what the user of a request may do on the dashboard."""


def read_settings() -> ProjectSettings:
    """Return the setting; refuse one that cannot be used as it is."""
    given = getattr(settings, "SOLOCRON", {})
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"the setting SOLOCRON must be a dict, not {type(given).__name__}. {_NOTHING}")
    for key in given:
        if key not in KEYS:
            hint = did_you_mean(str(key), KEYS, f"known are {', '.join(KEYS)}.")
            raise ConfigurationError(f"the setting SOLOCRON has no {key!r:.60}; {hint} {_NOTHING}")
    alias, url = _store(given.get("STORE"))
    modules = given.get("MODULES", ("jobs",))
    if isinstance(modules, str) or not all(isinstance(one, str) and one.isidentifier() for one in modules):
        raise ConfigurationError(f"SOLOCRON['MODULES'] must be a list of module names such as ['jobs']. {_NOTHING}")
    dashboard = given.get("DASHBOARD", {})
    if not isinstance(dashboard, Mapping) or not set(dashboard) <= set(_DASHBOARD):
        raise ConfigurationError(f"SOLOCRON['DASHBOARD'] must be a dict of {', '.join(_DASHBOARD)}. {_NOTHING}")
    options = SchedulerOptions()
    for key, option in _OPTIONS.items():
        if given.get(key) is not None:
            options[option] = given[key]  # type: ignore[literal-required]
    return ProjectSettings(
        alias=alias, url=url, options=options, modules=tuple(modules), carriers=_path(given, "CARRIERS"),
        setup=_path(given, "SETUP"), dashboard=dashboard, authorize=_path(given, "AUTHORIZE"),
    )  # fmt: skip


def _store(given: object) -> tuple[str | None, str | None]:
    """Return the alias of a database, or a URL; neither where the environment names the store."""
    if given is None:
        named = surroundings.store_url() or surroundings.store_file()
        return (None, None) if named else ("default", None)
    if isinstance(given, str) and "://" in given:
        return None, given
    if isinstance(given, str) and given in settings.DATABASES:
        return given, None
    hint = did_you_mean(str(given), settings.DATABASES, f"known are {', '.join(settings.DATABASES)}.")
    raise ConfigurationError(
        f"SOLOCRON['STORE']={str(given)[:30]!r} is neither an alias of DATABASES nor a URL; {hint} {_NOTHING}"
    )


def _path(given: Mapping[str, Any], key: str) -> str | None:
    """Return the dotted path of a function; it is imported when it is needed."""
    path = given.get(key)
    if path is not None and not (isinstance(path, str) and re.fullmatch(r"\w+(\.\w+)+", path)):
        raise ConfigurationError(
            f"SOLOCRON[{key!r}]={path!r:.60} is not the path of a function, such as 'shop.boot.boot'. {_NOTHING}"
        )
    return path
