"""The description of the API: committed as it is made, and true of every route."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from solocron.service.route import Route
from solocron.service.routes import API, ROUTES
from solocron.service.schema import openapi
from tests.unit.service.kit import World, path_of, query_of

DESCRIBED = [route for route in ROUTES if not route.form and not route.page]
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


def test_the_committed_description_is_the_one_that_is_made() -> None:
    made = json.dumps(openapi(ROUTES), indent=2, ensure_ascii=False) + "\n"
    assert PAGE.read_text(encoding="utf-8") == made, "write it anew: .venv/bin/python scripts/openapi.py"


def test_it_is_a_valid_description() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(openapi(ROUTES))


def test_the_service_returns_it(world: World) -> None:
    assert world.ask(f"{API}/openapi.json").json == openapi(ROUTES)


@pytest.mark.parametrize("route", DESCRIBED, ids=lambda route: f"{route.method} {route.path}")
def test_a_good_answer_has_the_keys_of_its_schema(world: World, route: Route) -> None:
    whole = openapi(ROUTES)
    content = whole["paths"][route.path][route.method.lower()]["responses"][str(route.statuses[0])]["content"]
    if route.writes:
        return
    found = world.ask(path_of(route, world.names), query=query_of(route))
    if "application/json" in content and route.path != f"{API}/openapi.json":
        assert found.status == 200
        fits(found.json, content["application/json"]["schema"], whole)


def fits(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> None:
    """Compare keys and types, all the way down."""
    if "$ref" in schema:
        schema = whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        assert any(_good(value, one, whole) for one in schema["anyOf"]), (value, schema)
        return
    kinds = {
        "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None), "array": list,
        "object": dict,
    }  # fmt: skip
    if "type" in schema:
        assert isinstance(value, kinds[schema["type"]]), (value, schema)
    if "properties" in schema:
        assert set(value) == set(schema["properties"])
        for key, item in value.items():
            fits(item, schema["properties"][key], whole)
    if "items" in schema:
        for item in value:
            fits(item, schema["items"], whole)


def _good(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    try:
        fits(value, schema, whole)
    except AssertionError:
        return False
    return True


def test_the_reference_has_every_route_with_its_role_and_parameters() -> None:
    page = (PAGE.parent / "http-api.md").read_text(encoding="utf-8")
    for route in DESCRIBED:
        key = " · key" if route.creates_runs else ""
        named = ", ".join(f"`{one.name}`" for one in (*route.parameters, *route.fields))
        assert f"| `{route.method} {route.path.removeprefix(API)}`{key} | {route.access} | {named} |" in page
    assert sum(page.count(f"\n| `{method} ") for method in ("GET", "POST", "PUT", "DELETE")) == len(DESCRIBED)
