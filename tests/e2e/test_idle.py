"""What a node costs that has nothing to do: one small write per beat, nothing per schedule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from solocron import Scheduler
from solocron.clock import SystemClock
from solocron.events import Event
from solocron.testing.fleet import wait_until

SCHEDULES = 1_000
BEATS = 1


def test_an_idle_node_with_a_thousand_schedules_sends_at_most_one_statement_a_second(tmp_path: Path) -> None:
    """At the default lease. `PRAGMA data_version`, which reads no table, is not counted."""
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'store.db'}")
    for number in range(SCHEDULES):
        scheduler.cron(f"{number % 60} {number % 24} 29 2 *", name=f"leap-{number}")(lambda: None)
    beats: list[tuple[float, Counter[str]]] = []

    def beat(event: Event) -> None:  # on the keeper's own thread: exactly one beat lies between two of these
        beats.append((SystemClock().boot(), Counter(scheduler.open().store.statements)))

    scheduler.on("session renewed", beat)
    with scheduler:
        assert len(scheduler.jobs()) == SCHEDULES
        wait_until(lambda: len(beats) > BEATS, within=60, what=f"{BEATS + 1} renewals")
    (since, before), (until, after) = beats[0], beats[BEATS]
    sent = after - before
    sent.pop("commit", None)  # counts transactions, not statements
    assert sent.total() <= until - since, f"{sent.total()} statements in {until - since:.1f} s: {dict(sent)}"
    assert sent.total() >= BEATS, "the renewals at least are counted"
