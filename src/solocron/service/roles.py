"""Who a caller is, and what each role may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Access", "Identity", "Role", "is_allowed"]


class Role(StrEnum):
    """What a caller may do. No role contains `tick`."""

    READ = "read"
    OPERATE = "operate"
    TICK = "tick"
    METRICS = "metrics"


class Access(StrEnum):
    """What a route asks for."""

    PUBLIC = "public"
    READ = "read"
    OPERATE = "operate"
    TICK = "tick"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller: the name that the audit keeps, and its role."""

    name: str
    role: Role = Role.READ


_ALLOWED = {
    Access.READ: {Role.READ, Role.OPERATE},
    Access.OPERATE: {Role.OPERATE},
    Access.TICK: {Role.TICK},
    Access.METRICS: {Role.METRICS, Role.READ, Role.OPERATE},
}


def is_allowed(role: Role, access: Access) -> bool:
    """Return whether a role opens a route."""
    return access is Access.PUBLIC or role in _ALLOWED[access]
