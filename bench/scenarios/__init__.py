"""One file per scenario. Each is bounded in time, and checks that every slot was recorded once before it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.report import Report
from bench.servers import STORES, Servers

__all__ = ["Bench", "Scenario"]


@dataclass(frozen=True, slots=True)
class Bench:
    """The means of a scenario: servers, a folder, and whether to be quick."""

    servers: Servers
    folder: Path
    quick: bool = False
    thorough: bool = False
    repeat: int = 1
    stores: tuple[str, ...] = STORES
    peers: tuple[str, ...] = ()


Scenario = Callable[[Bench], Report]
