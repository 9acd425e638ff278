"""A Flask application whose factory starts its scheduler, as people write it."""

from __future__ import annotations

import logging
import os

from flask import Flask

from solocron import Scheduler

scheduler = Scheduler(lease="2s")


@scheduler.every("1d")
def job() -> int:
    return os.getpid()


def create_app() -> Flask:
    logging.basicConfig(level=logging.INFO, format="%(process)d %(levelname)s %(message)s")
    app = Flask(__name__)
    app.add_url_rule("/", view_func=lambda: str(os.getpid()))
    scheduler.start()
    return app
