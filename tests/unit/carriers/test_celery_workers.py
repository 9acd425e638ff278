"""Workers of Celery are asked only where remote control exists: elsewhere the question would leave queues behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from kombu import Connection

from solocron.carriers.celery_workers import Workers


@pytest.mark.parametrize(("kinds", "enabled"), [({"direct"}, True), ({"direct", "fanout"}, False)])
def test_nobody_is_asked_without_remote_control(kinds: set[str], enabled: bool) -> None:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.worker_enable_remote_control = enabled
    asked: list[Any] = []
    app.control.mailbox = asked.append  # type: ignore[method-assign]

    def connect() -> Any:
        made = Connection("memory://")
        made.transport.implements = SimpleNamespace(exchange_type=kinds)
        return made

    workers = Workers(app, connect)
    assert workers.miss("reports.nightly") is None
    assert workers.explain("solocron.run") is None
    assert asked == []
