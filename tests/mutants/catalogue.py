"""Every bug of the list, X-01 to X-60: alive here and to be killed, or waiting for the feature that it would break."""

from __future__ import annotations

from tests.mutants import claims, effects, holder, lease, records, sessions
from tests.mutants.mutant import Mutant, Waiting

__all__ = ["MUTANTS", "WAITING"]

MUTANTS: list[Mutant] = sorted(
    (*lease.MUTANTS, *claims.MUTANTS, *holder.MUTANTS, *records.MUTANTS, *sessions.MUTANTS, *effects.MUTANTS),
    key=lambda mutant: mutant.name,
)

WAITING: list[Waiting] = []
"""None at the moment."""
