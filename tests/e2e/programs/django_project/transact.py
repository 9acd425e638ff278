"""Trigger inside a transaction that is rolled back, and inside one that is committed right before kill -9."""

import os
import signal
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
django.setup()

from django.db import transaction  # noqa: E402

from solocron.django import trigger  # noqa: E402

try:
    with transaction.atomic():
        trigger("bill", {"order": "rolled back"}, key="rolled back")
        raise RuntimeError
except RuntimeError:
    pass
with transaction.atomic():
    run = trigger("bill", {"order": "committed"}, key="committed")
    sys.stdout.write(f"{run}\n")
    sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
