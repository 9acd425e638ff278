"""Every bug of the list, X-01 and on, and those of policies, P-01 and on: to be killed, or waiting for a feature."""

from __future__ import annotations

from tests.mutants import calendars, claims, effects, holder, lease, outages, placing, policies, records, sessions
from tests.mutants.mutant import Mutant, Waiting

__all__ = ["MUTANTS", "OF_POLICIES", "WAITING"]

MUTANTS: list[Mutant] = sorted(
    (
        *(*lease.MUTANTS, *claims.MUTANTS, *holder.MUTANTS, *records.MUTANTS, *sessions.MUTANTS, *effects.MUTANTS),
        *outages.MUTANTS,
    ),
    key=lambda mutant: mutant.name,
)

OF_POLICIES: list[Mutant] = [*placing.MUTANTS, *calendars.MUTANTS, *policies.MUTANTS]

WAITING: list[Waiting] = []
"""None at the moment."""
