"""Errors in the handlers of web frameworks, answered as the how-to has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from flask import Flask
from starlette.testclient import TestClient

from solocron import Scheduler, SolocronError

Answer = tuple[int, dict[str, Any]]


def in_fastapi(scheduler: Scheduler) -> Answer:
    app = FastAPI()

    @app.exception_handler(SolocronError)
    def refuse(request: Request, error: SolocronError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, status_code=error.status)

    @app.get("/bill")
    async def bill() -> str:
        return await scheduler.aio.trigger("bill")

    found = TestClient(app).get("/bill")
    return found.status_code, found.json()


def in_flask(scheduler: Scheduler) -> Answer:
    app = Flask("shop")
    app.register_error_handler(SolocronError, lambda error: ({"detail": str(error)}, error.status))
    app.add_url_rule("/bill", view_func=lambda: scheduler.trigger("bill"))
    found = app.test_client().get("/bill")
    return found.status_code, found.json or {}


@pytest.mark.parametrize("ask", [in_fastapi, in_flask])
def test_a_handler_answers_503_while_the_store_is_away(ask: Callable[[Scheduler], Answer]) -> None:
    """Django's is in the suite of its project."""
    scheduler = Scheduler("postgresql://shop:secret@127.0.0.1:1/shop", enabled=False)
    status, body = ask(scheduler)
    scheduler.stop()
    assert (status, "cannot be reached" in body["detail"], "secret" in body["detail"]) == (503, True, False)
