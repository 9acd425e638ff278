"""For Alembic's `env.py`: keep autogenerate from dropping Solocron's tables, in any schema.

No model of the application has these tables, so Alembic would drop them, idempotency keys included, and effects would
happen again. Alembic itself is not imported.

    context.configure(..., include_object=include_object)

With another prefix in the store's URL: `functools.partial(include_object, prefix="jobs_")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solocron.effects.tables import GUARDS, KEYS
from solocron.stores.sql.statements import TABLES

__all__ = ["include_name", "include_object"]

_PREFIX = "solocron_"


def include_object(
    object_: Any, name: str | None, type_: str, reflected: bool, compare_to: Any, *, prefix: str = _PREFIX
) -> bool:
    """Leave out tables of ours that are only in the database; one that a model declares is compared as usual."""
    return not (type_ == "table" and reflected and compare_to is None and _is_ours(name, prefix))


def include_name(
    name: str | None, type_: str, parent_names: Mapping[str, str | None], *, prefix: str = _PREFIX
) -> bool:
    """Do the same before the database is read: faster, but without regard to the models."""
    return not (type_ == "table" and _is_ours(name, prefix))


def _is_ours(name: str | None, prefix: str) -> bool:
    """Return whether a table is ours: under our own prefix any table, under another one only known names."""
    if name is None:
        return False
    return name.startswith(_PREFIX) or name in {f"{prefix}{table}" for table in TABLES} or name in (GUARDS, KEYS)
