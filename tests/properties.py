"""How many examples a property is tried with: some in `make test`, a thousand in `make test-long`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

__all__ = ["calm"]

UNHURRIED = (HealthCheck.too_slow, HealthCheck.filter_too_much)


def calm(examples: int, *allowed: HealthCheck) -> settings:
    """Return settings with `examples`, or those of the profile if they are more, and without a deadline.

    A bare `max_examples` would hold in every profile, also in the long one. A machine with other work is slow, not
    wrong.
    """
    more = max(examples, settings.default.max_examples if settings.default is not None else 0)
    return settings(max_examples=more, deadline=None, suppress_health_check=(*UNHURRIED, *allowed))
