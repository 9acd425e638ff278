"""Next fire times of twenty expressions: Solocron against cronsim used plainly."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from bench.report import Report
from bench.scenarios import Bench
from solocron.schedules import Cron

__all__ = ["EXPRESSIONS", "run"]

EXPRESSIONS = (
    *("* * * * *", "*/5 * * * *", "*/15 9-17 * * 1-5", "0 * * * *", "30 3 * * *", "0 9 * * 1-5", "0 0 * * 0"),
    *("0 0 1 * *", "15 2 1,15 * *", "0 12 * * 1#1", "0 0 L * *", "5 4 * * 6", "0 */6 * * *", "59 23 31 12 *"),
    *("0 0 29 2 *", "10,40 * * * *", "0 8-18/2 * * *", "0 22 * * 1-5", "23 0-20/2 * * *", "0 5 1-7 * 1"),
)
_START = datetime(2026, 1, 1, tzinfo=UTC)


def run(bench: Bench) -> Report:
    """The same instants are asked for; in UTC and in a zone with clock changes."""
    report = Report("next", "A hundred instants of each of twenty expressions; the best of several rounds.")
    table = report.table("Next fire times", "zone", "Solocron/s", "cronsim/s", "ratio")
    for zone in ("UTC", "Europe/Vienna"):
        ours, theirs = _best(_ours, zone, bench.quick), _best(_theirs, zone, bench.quick)
        report.figures[zone] = {"solocron_per_s": round(ours), "cronsim_per_s": round(theirs)}
        table.add(zone, ours, theirs, ours / theirs)
        report.target(f"next fire times, {zone}", ">= 2 x cronsim", f"{ours / theirs:.1f} x", ours >= 2 * theirs)
    return report


def _best(work: Callable[[str], int], zone: str, quick: bool) -> float:
    best = 0.0
    for _ in range(3 if quick else 10):
        began = time.process_time()
        count = work(zone)
        best = max(best, count / (time.process_time() - began))
    return best


def _ours(zone: str) -> int:
    count = 0
    for expression in EXPRESSIONS:
        schedule = Cron(expression, tz=zone)
        at: datetime | None = _START
        for _ in range(100):
            assert at is not None
            at = schedule.after(at)
            count += 1
    return count


def _theirs(zone: str) -> int:
    count = 0
    for expression in EXPRESSIONS:
        found = CronSim(expression, _START.astimezone(ZoneInfo(zone)))
        for _ in range(100):
            next(found)
            count += 1
    return count
