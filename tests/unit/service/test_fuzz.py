"""Ask the API for all that its description allows, and for what it does not: no 500, and answers fit their schema."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from solocron.clock import SystemClock
from solocron.service.roles import Role
from solocron.service.routes import ROUTES
from solocron.service.schema import openapi
from solocron.service.wsgi import WsgiService
from tests.unit.service.kit import TOKENS
from tests.unit.service.kit import world as open_world

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
HEADERS = {"Authorization": f"Bearer {TOKENS[Role.OPERATE]}", "Host": "localhost", "Accept-Encoding": "identity"}


class Leaping(SystemClock):
    """A clock that goes on by two seconds at every look, so that no rate is used up."""

    def __init__(self) -> None:
        self._now = 0.0

    def boot(self) -> float:  # type: ignore[override]
        self._now += 2.0
        return self._now


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(openapi(ROUTES))
    schema.app = WsgiService(open_world(clock=Leaping()).service)
    return {f"{one.ok().method.upper()} {one.ok().path}": one.ok() for one in schema.get_all_operations()}


@pytest.mark.parametrize(
    "route", [f"{route.method} {route.path}" for route in ROUTES if not route.form and not route.page]
)
@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE])
def test_nothing_that_is_sent_is_a_500(operations: dict[str, Any], route: str, mode: Any) -> None:
    operation = operations[route]
    if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.path_parameters or operation.query):
        return

    @settings(max_examples=max(3, settings.default.max_examples // 50), suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        case.call_and_validate(headers=HEADERS, checks=CHECKS)

    ask()
