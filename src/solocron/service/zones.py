"""The zone that a request names."""

from __future__ import annotations

from solocron.errors import InvalidError
from solocron.schedules import load_zone
from solocron.service.problems import FieldFault, ProblemError

__all__ = ["checked_zone"]


def checked_zone(name: str) -> str:
    """Return the name of a zone that exists; raise a 400 that names the parameter."""
    try:
        return load_zone(name).name
    except InvalidError as error:
        fault = FieldFault("query", "tz", str(error))
        raise ProblemError(400, f"tz: {error}", code=type(error).__name__, fields=[fault]) from None
