"""A job that a node claims and a Celery worker carries out."""

from __future__ import annotations

import os

from books.models import Closing
from solocron import Run, every


@every("1s", run_in="celery", retries=2)
def close_books(run: Run) -> None:
    """Write the slot and the process of the worker."""
    Closing.objects.create(slot=run.slot.isoformat(), worker=os.getpid())
