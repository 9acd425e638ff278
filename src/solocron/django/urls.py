"""The dashboard and the HTTP API: `path("solocron/", include("solocron.django.urls"))`."""

from __future__ import annotations

from django.urls import re_path

from solocron.django.views import serve

app_name = "solocron"
urlpatterns = [re_path(r"^(?P<path>.*)$", serve, name="dashboard")]
