"""Roles of callers, and what each may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Identity", "Role", "RouteAccess", "is_allowed"]


class Role(StrEnum):
    """Rights of a caller. No role contains `tick`."""

    READ = "read"
    OPERATE = "operate"
    TICK = "tick"
    METRICS = "metrics"


class RouteAccess(StrEnum):
    """Rights that a route asks for."""

    PUBLIC = "public"
    READ = "read"
    OPERATE = "operate"
    TICK = "tick"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller: the name that the audit keeps, its role, and where it may use it."""

    name: str
    role: Role = Role.READ
    namespaces: frozenset[str] | None = None
    """The namespaces that it may see; None for all."""

    def may_enter(self, namespace: str) -> bool:
        """Return whether this caller may see anything of a namespace."""
        return self.namespaces is None or namespace in self.namespaces


_ALLOWED = {
    RouteAccess.READ: {Role.READ, Role.OPERATE},
    RouteAccess.OPERATE: {Role.OPERATE},
    RouteAccess.TICK: {Role.TICK},
    RouteAccess.METRICS: {Role.METRICS, Role.READ, Role.OPERATE},
}


def is_allowed(role: Role, access: RouteAccess) -> bool:
    """Return whether a role opens a route."""
    return access is RouteAccess.PUBLIC or role in _ALLOWED[access]
