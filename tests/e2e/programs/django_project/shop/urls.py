from django.contrib import admin
from django.http import JsonResponse
from django.urls import include, path

from solocron.django import scheduler, trigger
from solocron.http_tick import TickEndpoint, signed

SECRET = "a secret of twenty letters"
tick = TickEndpoint(scheduler, verify=signed(SECRET))

urlpatterns = [
    path("ops/solocron/", include("solocron.django.urls")),
    path("admin/", admin.site.urls),
    path("tick", tick.django),
    path("bill", lambda request: JsonResponse({"run": trigger("bill")})),
]
