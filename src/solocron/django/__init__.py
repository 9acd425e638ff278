"""Solocron in a Django project: one setting, jobs in `jobs.py` of each app, and `manage.py solocron run`.

    INSTALLED_APPS += ["solocron.django"]
    SOLOCRON = {"STORE": "default"}          # an alias of DATABASES, or a URL

`scheduler` is the project's scheduler, made from the setting when it is first used. Importing this module needs no
settings, and nothing here ever starts a thread by itself.
"""

from __future__ import annotations

from typing import cast

from solocron.django.project import SchedulerProxy
from solocron.django.triggering import trigger
from solocron.scheduler import Scheduler

__all__ = ["scheduler", "trigger"]

scheduler: Scheduler = cast("Scheduler", SchedulerProxy())
