"""`/doctor`: what is wrong with the store, its fleet and this service, and what may be repaired."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from solocron.service.audit import audited
from solocron.service.call import ApiCall
from solocron.stores.contract import Check

__all__ = ["DoctorAnswer", "RepairAnswer", "doctor", "repair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorAnswer:
    """The lines of `solocron doctor`, and those about this service."""

    ok: bool
    """True if no line is FAIL."""
    checks: tuple[Check, ...]
    as_of: datetime
    """When it was looked: at most once in ten seconds, however many ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairAnswer:
    """Each repair in one sentence."""

    repaired: tuple[str, ...]


def doctor(call: ApiCall) -> DoctorAnswer:
    """Return what is wrong, and what to do about it."""
    found = call.examination.look()
    return DoctorAnswer(ok=found.ok, checks=found.checks, as_of=found.at)


def repair(call: ApiCall) -> RepairAnswer:
    """Repair what is safe to repair; it may watch a silent node for a whole lease first."""
    with call.examination.repairing(), audited(call, "repair", "namespace") as act:
        done = call.writes.repair()
        act.after = {"repaired": done[:100]}
    return RepairAnswer(repaired=tuple(done))
