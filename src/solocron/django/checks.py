"""System checks: mistakes in the setting and in modules of jobs, told by `manage.py check` and before a node starts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from solocron.django import project
from solocron.django.database import in_tests, url_of
from solocron.django.settings import read_settings
from solocron.errors import ConfigurationError, EmptyStore, ScheduleError, StoreError

__all__ = ["check_database", "check_project"]


def check_project(**_: Any) -> list[CheckMessage]:
    """Check the setting, the database that it names, and every module of jobs; nothing is opened."""
    try:
        found = read_settings()
    except ConfigurationError as error:
        return [Error(str(error), id="solocron.E001")]
    messages = [_of_module(failed) for failed in project.failed_modules()]
    if found.alias is not None:
        try:
            url = url_of(found.alias)
        except ConfigurationError as error:
            return [*messages, Error(str(error), id="solocron.E002")]
        if url.startswith("sqlite:") and not settings.DEBUG and not in_tests():
            messages.append(
                Warning(
                    "The store is an SQLite file: only processes on this machine share it.",
                    hint="In production use PostgreSQL, MySQL or MariaDB, or set SOLOCRON['STORE'] to another URL.",
                    id="solocron.W001",
                )
            )
    return messages


def check_database(*, databases: Collection[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Look whether the store can be used, where `manage.py check --database` asks for it; nothing is made."""
    try:
        alias = read_settings().alias
        if alias is None or alias not in (databases or ()) or project.failed_modules() or in_tests():
            return []
        core = project.current()._core
        try:
            core.open(read_only=True)
        finally:
            core.store.close()
    except EmptyStore as error:
        return [
            Warning(
                str(error).replace("solocron run TARGET", "manage.py solocron run"),
                hint="The first node makes the tables, or manage.py solocron migrate.",
                id="solocron.W003",
            )
        ]
    except (ConfigurationError, StoreError) as error:
        return [Error(str(error), id="solocron.E006")]
    return []


def _of_module(failed: project.FailedModule) -> CheckMessage:
    text = str(failed.error)
    if isinstance(failed.error, ScheduleError):
        return Error(failed.sentence, id="solocron.E005")
    if "two jobs are named" in text:
        return Error(failed.sentence, id="solocron.E004")
    return Error(failed.sentence, id="solocron.E003")
