"""Small numbers work: percentiles, medians, a machine's load."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["busy_s", "load_now", "median", "percentile"]


def percentile(values: Sequence[float], of: float) -> float:
    """The value below which this share of a hundred lies, by rank; NaN of nothing."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * of / 100))]


def median(values: Sequence[float]) -> float:
    return percentile(values, 50)


def busy_s() -> float:
    """Seconds that the cores of this machine have worked since it started, for any process."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _iowait, irq, soft = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def load_now() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 2)
