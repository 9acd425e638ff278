"""Every bug of the list, X-01 to X-60: alive here and to be killed, or waiting for the feature that it would break."""

from __future__ import annotations

from tests.mutants import claims, lease, records, sessions
from tests.mutants.mutant import Mutant, Waiting

__all__ = ["MUTANTS", "WAITING"]

MUTANTS: list[Mutant] = sorted(
    (*lease.MUTANTS, *claims.MUTANTS, *records.MUTANTS, *sessions.MUTANTS), key=lambda mutant: mutant.name
)

WAITING = [
    Waiting("X-25", "a step's result is committed without its fence", "I17", "durable steps"),
    Waiting("X-26", "a step is executed again though it is committed", "I17", "durable steps"),
    Waiting("X-56", "guards are compared per job with allow(n) or shards", "I19", "the guard for targets"),
]
