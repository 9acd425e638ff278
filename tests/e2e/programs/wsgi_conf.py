"""Gunicorn's configuration: the node starts in each worker, and its module is imported where EARLY says."""

from __future__ import annotations

import os

if "EARLY" in os.environ:
    import tests.e2e.programs.wsgi  # noqa: F401 - in the parent, before the worker replaces its threads


def post_worker_init(worker: object) -> None:
    from tests.e2e.programs.wsgi import scheduler

    scheduler.start()


def worker_exit(server: object, worker: object) -> None:
    from tests.e2e.programs.wsgi import scheduler

    scheduler.stop("5s")
