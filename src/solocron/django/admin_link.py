"""A link to the dashboard in Django's admin, for users who may look at it.

Added to the list of applications of the default site, so that it is on the index and in the sidebar. Not by a template,
which would win only where this app stands before the admin, and not by a model, which would bring a migration.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from solocron.errors import SolocronError

__all__ = ["add_admin_link"]


def add_admin_link() -> None:
    """Let the default site list the dashboard, if the project has the admin."""
    if not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib import admin

    listed = admin.site.get_app_list
    if hasattr(listed, "solocron"):  # called again, by a test that changed INSTALLED_APPS
        return

    @wraps(listed)
    def with_dashboard(request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = listed(request, app_label)
        return found if app_label is not None else [*found, *_entries(request)]

    with_dashboard.solocron = True  # type: ignore[attr-defined]
    admin.site.get_app_list = with_dashboard


def _entries(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the entry, in the form of an application with one model; none where the urls are not included."""
    from solocron.django.views import role_of  # the service is loaded where it is shown

    try:
        url = reverse("solocron:dashboard", kwargs={"path": ""})
        if role_of(request) is None:
            return []
    except (NoReverseMatch, SolocronError):  # a mistake in a setting is told by the checks, not by the admin
        return []
    link = {
        "name": "Dashboard",
        "object_name": "Dashboard",
        "admin_url": url,
        "add_url": None,
        "view_only": True,
        "perms": {"view": True},
    }
    return [{"name": "Solocron", "app_label": "solocron", "app_url": url, "has_module_perms": True, "models": [link]}]
