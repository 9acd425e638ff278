"""Every bug of the list: X of schedulers, G of going back, H of hand-over, K of stores on keys, P of policies."""

from __future__ import annotations

from proof.mutants import (
    applications,
    calendars,
    chains,
    claims,
    effects,
    going_back,
    holder,
    key_stores,
    lease,
    offers,
    outages,
    pauses,
    placing,
    policies,
    records,
    sessions,
)
from proof.mutants.mutant import Mutant, Waiting

__all__ = ["MUTANTS", "OF_POLICIES", "WAITING"]

MUTANTS: list[Mutant] = sorted(
    (
        *(*lease.MUTANTS, *claims.MUTANTS, *holder.MUTANTS, *records.MUTANTS, *sessions.MUTANTS, *effects.MUTANTS),
        *outages.MUTANTS,
        *going_back.MUTANTS,
        *applications.MUTANTS,
        *key_stores.MUTANTS,
        *chains.MUTANTS,
        *offers.MUTANTS,
    ),
    key=lambda mutant: mutant.name,
)

OF_POLICIES: list[Mutant] = [*placing.MUTANTS, *calendars.MUTANTS, *policies.MUTANTS, *pauses.MUTANTS]

WAITING: list[Waiting] = []
"""None at the moment."""
