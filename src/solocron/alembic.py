"""For Alembic's `env.py`: autogenerate leaves Solocron's tables alone, in whatever schema they are.

They are in no model of the application's, so Alembic would drop them, idempotency keys included, and then effects would
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
    """Leave out tables of ours that only the database knows; one that the models declare is compared as usual."""
    return not (type_ == "table" and reflected and compare_to is None and _is_ours(name, prefix))


def include_name(
    name: str | None, type_: str, parent_names: Mapping[str, str | None], *, prefix: str = _PREFIX
) -> bool:
    """The same before anything is read from the database: faster, but it knows nothing of the models."""
    return not (type_ == "table" and _is_ours(name, prefix))


def _is_ours(name: str | None, prefix: str) -> bool:
    """Under our own prefix also what a later release makes; under another one only what we know of."""
    if name is None:
        return False
    return name.startswith(_PREFIX) or name in {f"{prefix}{table}" for table in TABLES} or name in (GUARDS, KEYS)
