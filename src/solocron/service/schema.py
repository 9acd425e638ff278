"""The OpenAPI 3.1 description, made from the table of routes and the annotations of what the handlers return."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.service.call import Answer, EventText, Text
from solocron.service.parameters import PATH_PATTERNS
from solocron.service.problems import TITLES
from solocron.service.roles import RouteAccess
from solocron.version import __version__

if TYPE_CHECKING:
    from solocron.service.route import Route

__all__ = ["openapi"]

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    timedelta: {"type": "number", "description": "seconds"},
    Overlap: {"type": "string"},
    CatchUp: {"type": "string"},
    Any: {},
}
_DURATION = _PLAIN[timedelta]
_BACKOFF = {
    "type": "object",
    "properties": {
        "first": _DURATION,
        "factor": {"type": "number"},
        "cap": _DURATION,
        "jitter": {"type": "number"},
    },
    "required": ["first", "factor", "cap", "jitter"],
}
_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "event": {"type": "string", "enum": ["hello", "changed", "gap", "bye"]},
        "id": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}
_PROBLEM = {
    "type": "object",
    "description": "Why a request was refused.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
        "instance": {"type": "string", "description": "the id of the request"},
        "fields": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in ("in", "name", "message")},
                "required": ["in", "name", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "code", "detail", "instance"],
}


def openapi(table: Sequence[Route]) -> dict[str, Any]:
    """Return the description of a table of routes."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    paths: dict[str, dict[str, Any]] = {}
    for route in (one for one in table if not one.form and not one.page):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Solocron",
            "version": __version__,
            "description": "Scheduled jobs that run once, however many replicas you run: what ran, what did not, why.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "responses": {
                str(status): {
                    "description": title,
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
                for status, title in TITLES.items()
            },
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": _id_of(route),
        "summary": (route.handler.__doc__ or "").strip().partition("\n")[0],
        "parameters": [*_path_parameters(route.path), *_query_parameters(route)],
        "responses": _responses(route, schemas),
    }
    if route.creates_runs:
        schema = {"type": "string", "minLength": 1, "maxLength": 256}
        found["parameters"].append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": schema})
    if route.fields:
        found["requestBody"] = {"content": {"application/json": {"schema": _body_schema(route)}}}
    if route.access is not RouteAccess.PUBLIC:
        found["security"] = [{"token": []}]
        found["description"] = f"Needs the role `{route.access}`."
    return found


def _path_parameters(path: str) -> list[dict[str, Any]]:
    found = []
    for name in re.findall(r"{(\w+)}", path):
        schema = {"type": "string", "pattern": f"^{PATH_PATTERNS[name]}$"}
        found.append({"name": name, "in": "path", "required": True, "schema": schema})
    return found


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "in": "query",
            "description": one.summary,
            "schema": one.schema,
            **({"required": True} if one.required else {}),
        }
        for one in route.parameters
    ]


def _body_schema(route: Route) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {one.name: {**one.schema, "description": one.summary} for one in route.fields},
        "required": [one.name for one in route.fields if one.required],
        "additionalProperties": False,
    }


def _responses(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    returned = get_type_hints(route.handler)["return"]
    if returned is Text:
        content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
        good = {"200": {"description": "The text.", "content": content}}
        if route.path.startswith("/health/ready"):
            good["503"] = {"description": "The store does not answer.", "content": content}
    elif returned is EventText:
        content = {"text/event-stream": {"schema": _EVENT}}
        good = {"200": {"description": "The events.", "content": content}}
    else:
        if get_origin(returned) is Answer:
            returned = get_args(returned)[0]
        schema = _schema_of(returned, schemas)
        answer = {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
        good = {str(status): answer for status in route.statuses}
    refused = {str(status): {"$ref": f"#/components/responses/{status}"} for status in route.problems}
    return refused | good


def _schema_of(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    if kind is Backoff:
        return _BACKOFF
    if isinstance(kind, type) and kind not in _PLAIN and issubclass(kind, StrEnum):
        return {"type": "string", "enum": [str(one) for one in kind]}
    if isinstance(kind, types.GenericAlias) or get_origin(kind) is not None:
        return _generic(kind, schemas)
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_dataclass(kind) and isinstance(kind, type):
        return _component(kind.__name__, kind, {}, schemas)
    raise TypeError(f"{kind!r} has no schema; give it one in service/schema.py")


def _generic(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema_of(one, schemas) for one in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is tuple and inner[-1] is not Ellipsis:
        items = [_schema_of(one, schemas) for one in inner]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin in (tuple, list, Sequence):
        return {"type": "array", "items": _schema_of(inner[0], schemas)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema_of(inner[1], schemas)}
    if is_dataclass(origin) and isinstance(origin, type):
        named = dict(zip(origin.__parameters__, inner, strict=True))  # type: ignore[attr-defined]
        return _component(f"{origin.__name__}Of{inner[0].__name__}", origin, named, schemas)
    raise TypeError(f"{kind!r} has no schema; give it one in service/schema.py")


def _component(name: str, kind: type, named: Mapping[Any, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Describe a frozen value once, and refer to it; `named` are the arguments of a generic one."""
    if name not in schemas:
        schemas[name] = {}  # a view may hold itself
        hints = get_type_hints(kind)
        properties = {}
        for field in fields(kind):
            hint = hints[field.name]
            if get_origin(hint) is tuple and get_args(hint)[0] in named:
                properties[field.name] = {"type": "array", "items": _schema_of(named[get_args(hint)[0]], schemas)}
            else:
                properties[field.name] = _schema_of(hint, schemas)
        schemas[name] = {
            "type": "object",
            "description": (kind.__doc__ or "").strip().partition("\n")[0],
            "properties": properties,
            "required": list(properties),
        }
    return {"$ref": f"#/components/schemas/{name}"}


def _id_of(route: Route) -> str:
    words = re.findall(r"\w+", route.path.replace("/api/v1", ""))
    return "_".join([route.method.lower(), *words])
