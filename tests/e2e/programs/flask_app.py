"""Flask applications: one whose factory starts its scheduler, as people write it, and one with the extension."""

from __future__ import annotations

import logging
import os

from flask import Flask, current_app

from solocron import Scheduler
from solocron.flask import Solocron

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


solo = Solocron(lease="2s")
solo.setup("tests.e2e.programs.flask_app:extended_app")


@solo.every("1d", name="where")
def where() -> list[object]:
    return [os.getpid(), current_app.name]


@solo.every("1d", name="isolated", run_in="process")
def isolated() -> str:
    return current_app.name


def extended_app() -> Flask:
    """The node starts where requests are served, however often the module is imported."""
    app = Flask("shop")
    app.config["SOLOCRON_START"] = "first-request"
    app.add_url_rule("/", view_func=lambda: str(os.getpid()))
    solo.init_app(app)
    return app
