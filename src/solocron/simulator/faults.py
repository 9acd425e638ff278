"""What can go wrong in a simulated world: which faults are on and how often is itself drawn from the seed."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["FAULTS", "Options", "draw"]

FAULTS = (
    "freeze",
    "kill",
    "drain",
    "partition",
    "lost_request",
    "lost_reply",
    "late_request",
    "repeated_request",
    "slow",
    "serialization",
    "store_restart",
    "clock_step",
    "clock_rate",
    "clock_skew",
    "deploy",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One world's whole set-up; a seed and its options replay it exactly. Rates of 0 switch a fault off.

    `freeze`, `kill`, `drain`, `partition`, `store_restart`, `clock_step` and `deploy` are mean seconds between two;
    the others are probabilities per message, or for `clock_rate` and `clock_skew` how far a node's clocks are off.
    """

    seed: int
    hours: float = 1.0
    nodes: int = 5
    jobs: int = 8
    lease: float = 15.0
    locking: bool = True
    max_running: int = 8
    delay: float = 0.002
    freeze: float = 0.0
    kill: float = 0.0
    drain: float = 0.0
    partition: float = 0.0
    lost_request: float = 0.0
    lost_reply: float = 0.0
    late_request: float = 0.0
    repeated_request: float = 0.0
    slow: float = 0.0
    serialization: float = 0.0
    store_restart: float = 0.0
    clock_step: float = 0.0
    clock_rate: float = 0.0
    clock_skew: float = 0.0
    deploy: float = 0.0

    def command(self) -> str:
        """How to see this very world again."""
        default = Options(seed=0)
        words = [f"solocron simulate --seed {self.seed}"]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "seed" and value != getattr(default, field.name):
                words.append(f"--set {field.name}={value}")
        return " ".join(words)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def enabled(self) -> list[str]:
        return [name for name in FAULTS if getattr(self, name)]


def draw(seed: int, *, nodes: int = 5, hours: float = 1.0) -> Options:
    """The options of a seed: a swarm, in which each world has some faults only, and those often or rarely."""
    dice = random.Random(f"options {seed}")  # noqa: S311 - reproducible on purpose
    lease = dice.choice((3.0, 6.0, 15.0))

    def often(mean: float) -> float:
        return dice.choice((0.0, 0.0, mean, mean * 4)) * lease

    def chance(most: float) -> float:
        return dice.choice((0.0, 0.0, most / 10, most))

    return Options(
        seed=seed,
        hours=hours,
        nodes=nodes,
        jobs=dice.randint(3, 10),
        lease=lease,
        locking=dice.random() < 0.5,
        max_running=dice.choice((2, 8, 32)),
        delay=dice.choice((0.0005, 0.005, 0.05)),
        freeze=often(8),
        kill=often(12),
        drain=often(20),
        partition=often(15),
        lost_request=chance(0.05),
        lost_reply=chance(0.05),
        late_request=chance(0.02),
        repeated_request=chance(0.05),
        slow=chance(0.2),
        serialization=chance(0.1),
        store_restart=often(40),
        clock_step=often(60),
        clock_rate=dice.choice((0.0, 0.0, 0.0005, 0.02)),
        clock_skew=dice.choice((0.0, 0.0, 5.0, 3600.0)),
        deploy=often(60),
    )
