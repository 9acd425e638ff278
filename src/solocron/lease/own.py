"""The lease of this process as its threads share it: the trust in it, and the store's clock, behind one mutex.

The mutex is never kept across a call to anything else. The table of attempts uses the same one, so that entering a
claim and losing the session each are one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from solocron.lease.store_clock import StoreClock
from solocron.lease.terms import LeaseTerms
from solocron.lease.trust import Standing, Trust
from solocron.model.documents.session import NO_REPORT, REFUSED, RefusedEnd, SelfReport
from solocron.runtime import Runtime

__all__ = ["OwnLease"]


class OwnLease:
    """One process's session, how long it can be trusted, and what its owner knows of the store's clock."""

    def __init__(self, runtime: Runtime, terms: LeaseTerms, replan: Callable[[], None]) -> None:
        """Call `replan` when a plan no longer holds: jeopardy is over, or the store's clock has leapt."""
        self.boot = runtime.clock.boot
        self.mutex = runtime.mutex()
        self.trust = Trust(terms)
        self._store_clock = StoreClock()
        self._replan = replan
        self._beat = terms.beat
        self._report = NO_REPORT

    # --- trust -------------------------------------------------------------------------------------------------

    @property
    def session(self) -> str | None:
        return self.trust.session

    @property
    def beats(self) -> int:
        """Highest number of a renewal of this session that the store has acknowledged."""
        return self.trust.beats

    def begin(self, session: str, asked: float) -> None:
        with self.mutex:
            self.trust.begin(session, asked)

    def renewed(self, session: str, asked: float) -> bool:
        """Extend the trust; False if the reply came after it had ended."""
        with self.mutex:
            now = self.boot()
            jeopardy = self.trust.standing(now) is Standing.JEOPARDY
            renewed = self.trust.renew(session, asked, now)
        if renewed and jeopardy:
            self._replan()
        return renewed

    def next_number(self) -> int:
        with self.mutex:
            return self.trust.next_number()

    def acknowledge(self, session: str, number: int) -> None:
        with self.mutex:
            self.trust.acknowledge(session, number)

    def trouble(self) -> None:
        with self.mutex:
            self.trust.trouble()

    def lose(self) -> str | None:
        with self.mutex:
            return self.trust.lose()

    def standing(self) -> Standing:
        with self.mutex:
            return self.trust.standing(self.boot())

    def trusted_until(self, session: str | None = None) -> float | None:
        """Return the boot time at which the trust ends; None without a session, or if `session` is not this one."""
        with self.mutex:
            return self.trust.until if session in (None, self.trust.session) else None

    def renewed_at(self) -> float:
        """Return the boot time at which the last acknowledged renewal was sent."""
        with self.mutex:
            return self.trust.renewed_at

    def in_touch_since(self) -> float:
        """Return the boot time since which this process has renewed its session without a failure or a delay."""
        with self.mutex:
            return self.trust.in_touch_since

    def holds(self, session: str) -> bool:
        """Return whether that session is trusted now."""
        with self.mutex:
            return self.trust.holds(session, self.boot())

    # --- what the session's document tells of this process ---------------------------------------------------------

    def report(self, asked: float, wall: int) -> SelfReport:
        """Return the facts to send with a renewal at the boot time `asked`, when the wall clock reads `wall`.

        A renewal that is sent half a beat later than planned is a late one: the process was paused, starved or cut off.
        """
        with self.mutex:
            now, late = self.store_time(asked), asked - self.trust.renewed_at - self._beat
            skew = None if now is None else round((wall - now) / 1_000) * 1_000
            self._report = replace(self._report, skew=skew)
            if self.trust.session is not None and late > self._beat / 2:
                self._report = replace(self._report, late_by=round(late * 1_000_000), late_at=now)
            return self._report

    def refused(self, run: str, fence: int, outcome: str) -> None:
        """Remember that the store refused the end of a run; the next renewal tells it."""
        with self.mutex:
            one = RefusedEnd(run=run, fence=fence, at=self.store_time(self.boot()) or 0, outcome=outcome)
            kept = (*self._report.refused, one)[-REFUSED:]
            self._report = replace(self._report, refused=kept)

    # --- the store's clock -----------------------------------------------------------------------------------------

    def observe(self, now: int, *, asked: float, replied: float) -> None:
        """Record that the store's clock read `now` between two boot times; 0 if the reply did not say."""
        with self.mutex:
            leapt = self._store_clock.read(now, asked=asked, replied=replied)
        if leapt:
            self._replan()

    def boot_of(self, instant: int) -> float | None:
        """Return the boot time at which the store's clock has certainly reached an instant.

        None if it was never observed.
        """
        with self.mutex:
            return self._store_clock.boot_of(instant)

    def ran_evenly_since(self, instant: int) -> bool:
        """Return whether the store's clock has not leapt forward since it wrote an instant, as far as was observed."""
        with self.mutex:
            return self._store_clock.ran_evenly_since(instant)

    def store_now(self) -> int | None:
        """Return the store's time as far as it is known, for display and for records of what happened here."""
        with self.mutex:
            return self.store_time(self.boot())

    def store_time(self, boot: float) -> int | None:
        """Return the store's time at a boot time; for callers that have the mutex."""
        return self._store_clock.time_of(boot)
