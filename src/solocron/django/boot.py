"""Prepare a process of Solocron's own, such as a child of `run_in="process"`: Django first, then the project."""

from __future__ import annotations

import django
from django.apps import apps
from django.utils.module_loading import import_string

from solocron.django.settings import read_settings

__all__ = ["boot"]


def boot() -> None:
    """Set Django up, unless a worker of a queue has done so, and call the project's SETUP."""
    if not apps.ready:  # a second call would configure logging anew
        django.setup()
    path = read_settings().setup
    if path is not None:
        import_string(path)()
