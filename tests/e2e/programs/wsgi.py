"""A WSGI application with a node in its process, and a page that blocks it; `wsgi_conf` configures gunicorn for it."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable

from solocron import Scheduler

logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
scheduler = Scheduler(os.environ["SOLOCRON_STORE"], node="web", lease="600ms")


@scheduler.every("1000d")
def hello() -> str:
    return "hello"


def app(environ: dict[str, str], start_response: Callable[..., object]) -> Iterable[bytes]:
    end = time.monotonic() + float(environ["PATH_INFO"].strip("/") or 0)
    while time.monotonic() < end:
        pass  # neither a greenlet nor a loop gets a turn meanwhile
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
