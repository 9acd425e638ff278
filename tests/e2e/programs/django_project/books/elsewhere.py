"""The paths of a project without the admin."""

from django.urls import include, path

urlpatterns = [path("ops/solocron/", include("solocron.django.urls"))]
