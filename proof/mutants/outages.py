"""Bugs that show after an outage, or when a node meets what is no error of its store: I23 and I24."""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest.mock import patch

import psycopg

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check
from solocron.engine.finisher import Finisher
from solocron.engine.recovery import Recovery
from solocron.errors import StoreError
from solocron.lease.own import OwnLease
from solocron.lease.trust import Standing
from solocron.stores.sql.postgres.listener import Listener
from tests.unit.engine import test_finisher, test_outages
from tests.unit.stores.sql import test_postgres_listener

__all__ = ["MUTANTS"]


def _x85(bites: Bites) -> Patches:
    real = OwnLease.renewed

    def in_silence(self: OwnLease, session: str, asked: float) -> bool:
        bites(self.standing() is Standing.JEOPARDY)
        with patch.object(self, "_replan", lambda: None):
            return real(self, session, asked)

    return [(OwnLease, "renewed", in_silence)]


def _x86(bites: Bites) -> Patches:
    def sleeps_it_out(self: Listener, timeout: float, *, listen: bool) -> bool:
        end = time.monotonic() + timeout
        try:
            return self._listen_until(end)
        except (psycopg.Error, StoreError):
            bites()
            self._drop()
        time.sleep(max(0.0, end - time.monotonic()))
        return False

    return [(Listener, "wait", sleeps_it_out)]


def _x87(bites: Bites) -> Patches:
    real = Finisher.step

    def only_store_errors(self: Finisher, now: float) -> float:
        batch = self._next_batch()
        try:
            return real(self, now)
        except StoreError:
            raise
        except Exception:
            bites()
            with self._mutex:
                self._items = [item for item in self._items if item not in batch]
            raise

    return [(Finisher, "step", only_store_errors)]


def _x90(bites: Bites) -> Patches:
    real = Recovery.attend

    def in_silence(self: Recovery, session: str, running: int, between: Callable[[], None]) -> bool:
        known, stale = self.gate.known, self.gate.stale
        with (
            patch.object(self._context.signals.claim, "look_again"),
            patch.object(self._context.signals.sweep, "wake"),
        ):
            attended = real(self, session, running, between)
        same = known is not None and self.gate.known is not None and known.gate == self.gate.known.gate
        bites(stale and attended and same)
        if not same:
            self._context.signals.claim.look_again()
            self._context.signals.sweep.wake()
        return attended

    return [(Recovery, "attend", in_silence)]


MUTANTS = [
    Mutant(
        "X-85",
        "jeopardy ends without a wake-up",
        "I23",
        _x85,
        Check(test_outages.test_slots_start_soon_after_the_store_is_back, (1, 0.4)),
    ),
    Mutant(
        "X-90",
        "a namespace that is read again and unchanged wakes no claimer",
        "I23",
        _x90,
        Check(test_outages.test_a_claimer_that_looked_while_the_namespace_was_read_again_does_not_sleep_on),
    ),
    Mutant(
        "X-86",
        "a listener sleeps out its poll",
        "I23",
        _x86,
        Check(
            test_postgres_listener.test_a_server_that_comes_back_is_heard_again_long_before_the_poll_is_over, by="I23"
        ),
    ),
    Mutant(
        "X-87",
        "the finisher catches only store errors",
        "I24",
        _x87,
        Check(
            test_finisher.test_an_outcome_that_makes_the_store_raise_is_kept_and_keeps_nobody_else,
            (MemoryError,),
            by="I24",
        ),
    ),
]
