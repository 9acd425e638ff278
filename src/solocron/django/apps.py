"""The Django app: imports the jobs of every app once models are loaded, and starts nothing."""

from __future__ import annotations

import django
from django.apps import AppConfig
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from solocron.django import project
from solocron.django.admin_link import add_admin_link
from solocron.django.checks import check_database, check_project

__all__ = ["SolocronConfig"]

OLDEST: tuple[int, int] = (4, 2)


class SolocronConfig(AppConfig):  # type: ignore[misc]  # Django ships no types
    """Solocron in a Django project."""

    name = "solocron.django"
    label = "solocron"
    verbose_name = "Solocron"

    def ready(self) -> None:
        """Import what declares jobs. A module that fails is told by the system checks, and by the first use."""
        if django.VERSION[:2] < OLDEST:
            raise ImproperlyConfigured(
                f"Django {django.__version__} is too old for solocron.django: 4.2 or later is needed."
            )
        checks.register(check_project, "solocron")
        checks.register(check_database, checks.Tags.database)
        setting_changed.connect(_setting_changed, dispatch_uid="solocron")
        project.load_jobs()
        add_admin_link()


def _setting_changed(*, setting: str, **_: object) -> None:
    if setting == "SOLOCRON":
        project.forget()
