"""Prices that are refreshed once a second by one of the workers, and read by all of them."""

from __future__ import annotations

import os
from typing import Any

from flask import Flask, current_app
from redis import Redis

from solocron import Run, SolocronError
from solocron.flask import Solocron

solo = Solocron(lease="3s")


def prices() -> Any:
    """Return the application's own connection to Redis, made where it is used."""
    return Redis.from_url(current_app.config["SOLOCRON_STORE"], decode_responses=True)


@solo.every("1s", retries=1)
def refresh(run: Run) -> None:
    """Write down the slot and the process: a slot that is there twice would be a bug."""
    with prices() as redis:
        redis.rpush("example:refreshed", f"{run.slot.isoformat()} {os.getpid()}")


def create_app() -> Flask:
    """Make the application; the node starts in each worker of gunicorn."""
    app = Flask(__name__)
    app.config.update(SOLOCRON_STORE=os.environ["REDIS_URL"], SOLOCRON_START="first-request")
    solo.init_app(app)

    @app.get("/")
    def refreshed() -> list[str]:
        with prices() as redis:
            return list(redis.lrange("example:refreshed", 0, -1))

    @app.post("/refresh")
    def refresh_now() -> dict[str, str]:
        return {"run": solo.trigger("refresh")}

    @app.errorhandler(SolocronError)
    def refuse(error: SolocronError) -> tuple[dict[str, str], int]:
        return {"detail": str(error)}, error.status

    return app
