"""Bugs of business calendars, beside the list: days off, slots that move, revisions that nodes have not heard of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from proof.simulator.options import MONDAY
from solocron.calendars.revisions import Calendars, _behind
from solocron.clock import SECOND
from solocron.jobs.registry import Registry
from solocron.model.change import Kind
from solocron.model.documents.definition import CALENDAR_REVISION, Definition
from solocron.model.documents.job import Job
from solocron.model.timetable import Timetable
from solocron.model.transitions import registration
from solocron.schedules import Calendared, instants
from solocron.stores.contract import All
from tests.simulation import test_regressions

__all__ = ["MUTANTS"]


def _p4(bites: Bites) -> Patches:
    real = Registry.resolve

    def by_what_is_cached(self: Registry, spec: Mapping[str, Any] | None) -> Timetable:
        if spec is not None and spec.get("calendar") is not None:
            known = [revision for name, revision in self.calendars if name == spec["calendar"]]
            cached = min(known, default=spec.get(CALENDAR_REVISION, 0))
            bites(cached != spec.get(CALENDAR_REVISION))
            spec = {**spec, CALENDAR_REVISION: cached}
        return real(self, spec)

    return [(Registry, "resolve", by_what_is_cached)]


def _p5(bites: Bites) -> Patches:
    real = Calendared._moved

    def beside_the_regular_ones(self: Calendared, run: tuple[date, date]) -> tuple[int, ...]:
        low, high = self._start(run[0]) - 1, self._start(run[1] + timedelta(days=1)) - 1
        targets = {self._move(slot, self._target(run)) for slot in instants.between(self.schedule, low, high)}
        doubled = targets.difference(real(self, run))
        bites(doubled)
        return tuple(sorted([*real(self, run), *(at + SECOND for at in doubled)]))

    return [(Calendared, "_moved", beside_the_regular_ones)]


def _p6(bites: Bites) -> Patches:
    real = Timetable.left_out

    def without_a_word(self: Timetable, a: int, b: int) -> None:
        bites(real(self, a, b))

    return [(Timetable, "left_out", without_a_word)]


def _p7(bites: Bites) -> Patches:
    real = registration._to_be_fetched

    def at_once(definition: Definition, slots: Timetable) -> bool:
        bites(real(definition, slots))
        return False

    return [(registration, "_to_be_fetched", at_once)]


def _p8(bites: Bites) -> Patches:
    def nobody(self: Calendars, late_for: int, latest: Mapping[str, int] | None = None) -> list[str]:
        heads = self.latest()
        bites(any(isinstance(job, Job) and _behind(job, heads) for job in self.store.read(All(Kind.JOB))))
        return []

    return [(Calendars, "follow", nobody)]


_DAYS = {"calendars": 9.0, "start": MONDAY - 60}
"""A week begins, and every three leases the planner changes the days off."""

_DEPLOY = test_regressions.test_a_deploy_that_meets_an_older_revision_of_a_calendar_fetches_it_before_it_decides

MUTANTS = [
    Mutant("P-04", "a node goes by the revision that it has in its cache", "I10", _p4, Worlds(_DAYS)),
    Mutant("P-05", "a moved slot doubles a regular one", "I10", _p5, Worlds(_DAYS)),
    Mutant("P-06", "days off are left out without a record", "I5", _p6, Worlds(_DAYS)),
    Mutant("P-07", "a deploy ends a rule whose revision it does not know", "I5", _p7, Check(_DEPLOY, by="I5")),
    Mutant("P-08", "no node puts jobs under a new revision", "I14", _p8, Worlds(_DAYS)),
]
