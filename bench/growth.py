"""`python -m bench.growth`: how an etcd grows under ten runs a second, and when doctor warns of it.

Four private servers beside each other, a node on each. Two keep every revision, as etcd does by default: one with the
default quota, one with a small quota that is reached within the hour. Two compact; of those, one keeps its history and
one prunes it after some minutes. Every minute: the size by the server's own word, runs recorded, and what doctor says.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import load_now
from bench.fleet import opened
from bench.processes import ROOT, Child, Children
from bench.report import Report, machine, write
from solocron.errors import StoreError
from solocron.stores.contract import Store
from tests.servers import Etcd

__all__ = ["Growing", "main"]

RATE = 10
"""Jobs that are due every second, each at a moment of its own in it: no two runs share a commit but by chance."""
KEPT = 2_000
"""Bytes that a run may leave on a server that compacts, its history included."""


@dataclass(slots=True)
class Growing:
    """One server, its node, and what was seen of them."""

    name: str
    settings: Mapping[str, str]
    keep: str
    server: Etcd = field(init=False)
    node: Child = field(init=False)
    store: Store = field(init=False)
    samples: list[dict[str, Any]] = field(default_factory=list)
    began: float = 0.0
    refused_at: float | None = None
    """Minutes until the server took no writes."""

    def begin(self, stack: ExitStack, children: Children) -> None:
        settings = {"auto-compaction-retention": "0", **self.settings}  # 0 is what etcd has by default
        self.server = stack.enter_context(Etcd(settings=settings))
        url = self.server.fresh_url()
        orders = {"store": url, "node": "n1", "max_running": 32, "lease": "15s", "namespace": "default"}
        orders |= {"declared": RATE, "expressions": ["* * * * * *"], "spread": "1s", "keep": self.keep}
        self.node = children.add(Child.module("bench.node", orders))
        self.node.wait_for("ready", 600)  # beside other work a start may take a minute
        self.store = stack.enter_context(opened(url))
        self.began = time.monotonic()

    def look(self) -> dict[str, Any]:
        """Take a sample; a server that takes no writes is left as it is, and its node ended."""
        minute = (time.monotonic() - self.began) / 60
        status = self.server.call("/v3/maintenance/status", {})
        space = next(check for check in self.store.checks() if check.name == "space")
        full = any(check.name == "alarms" and check.level == "FAIL" for check in self.store.checks())
        cpu = self.node.count()["cpu"] if self.refused_at is None else None
        if full and self.refused_at is None:
            self.refused_at = minute
            self.node.kill()
        sample = {
            "minute": round(minute, 2),
            "size": int(status.get("dbSize", 0)),
            "in_use": int(status.get("dbSizeInUse", 0)),
            "revision": int(status["header"]["revision"]),
            "runs": int(self.node.said.get("finished", 0)),
            "doctor": space.level,
            "said": space.detail,
            "full": full,
            "cpu_s": cpu,
            "load": load_now(),
        }
        self.samples.append(sample)
        return sample

    def first(self, level: str) -> dict[str, Any] | None:
        """Return the first sample at which doctor said this while the server still took writes."""
        return next((sample for sample in self.samples if sample["doctor"] == level and not sample["full"]), None)


def main() -> int:
    asked = _arguments()
    growing = [
        Growing("default settings", {}, "30d"),
        Growing(f"compacting, {asked.retention}", {"auto-compaction-retention": asked.retention}, "30d"),
        Growing(
            f"compacting, history kept {asked.keep}", {"auto-compaction-retention": asked.retention}, asked.keep
        ),
        Growing(f"default, quota {asked.quota_mb} MB", {"quota-backend-bytes": str(asked.quota_mb * 10**6)}, "30d"),
    ]  # fmt: skip
    folder = Path(asked.out).resolve()
    facts: dict[str, Any] = {}
    with Children() as children, ExitStack() as stack:
        for one in growing:
            one.begin(stack, children)
        facts = machine([growing[0].server.version()])
        began = time.monotonic()
        for turn in range(1, max(1, round(asked.minutes * 60 / asked.every)) + 1):
            time.sleep(max(0.0, began + turn * asked.every - time.monotonic()))
            for one in growing:
                try:
                    print(_line(one.name, one.look()), flush=True)
                except (StoreError, OSError, RuntimeError) as error:  # a sample less; the other servers go on
                    print(f"no sample of {one.name}: {error}", flush=True)
            write([_report(growing, asked)], facts, folder)
    report = _report(growing, asked)
    print(report.text())
    return 0 if all(target.ok for target in report.targets) else 1


def _line(name: str, sample: Mapping[str, Any]) -> str:
    figures = f"{sample['size'] / 1e6:7.1f} MB, {sample['in_use'] / 1e6:7.1f} in use, {sample['runs']:6} runs"
    full = ", FULL" if sample["full"] else ""
    return f"{sample['minute']:6.1f} min  {name:34} {figures}  {sample['doctor']}{full}"


def _report(growing: list[Growing], asked: argparse.Namespace) -> Report:
    report = Report("etcd-growth", f"{RATE} runs a second on etcd, one node on each server; {asked.minutes:g} minutes.")
    table = report.table(
        "Growth", "server", "minutes", "runs", "runs/s", "size MB", "in use MB", "bytes/run", "revisions/run", "doctor"
    )
    for one in growing:
        if not one.samples:
            continue
        last = next((s for s in reversed(one.samples) if not s["full"]), one.samples[-1])
        seconds = max(last["minute"] * 60, 1.0)
        runs = max(last["runs"], 1)
        table.add(
            one.name, last["minute"], last["runs"], round(runs / seconds, 2), round(last["size"] / 1e6, 1),
            round(last["in_use"] / 1e6, 1), round(last["size"] / runs), round(last["revision"] / runs, 2),
            last["doctor"],
        )  # fmt: skip
        report.figures[one.name] = {"settings": dict(one.settings), "keep": one.keep, "samples": one.samples}
    _judge(report, growing, asked)
    return report


def _judge(report: Report, growing: list[Growing], asked: argparse.Namespace) -> None:
    """Each server did its runs; the small quota was reached after doctor had warned; the pruned server stays flat."""
    for one in growing[:3]:
        if not one.samples:
            report.target(f"runs/s, {one.name}", f">= {0.95 * RATE:g}", "no sample", False)
            continue
        last = one.samples[-1]
        rate = last["runs"] / (last["minute"] * 60)
        report.target(f"runs/s, {one.name}", f">= {0.95 * RATE:g}", f"{rate:.2f}", rate >= 0.95 * RATE)
    compacting = growing[1]
    if compacting.samples:
        last = compacting.samples[-1]
        kept = last["in_use"] / max(last["runs"], 1)
        report.target(f"kept, {compacting.name}", f"<= {KEPT:,} bytes a run", f"{kept:,.0f}", kept <= KEPT)
    small = growing[3]
    if small.refused_at is not None:
        words = {level: small.first(level) for level in ("WARN", "FAIL")}
        told = ", ".join(
            f"{level} at minute {one['minute']:.0f} and {one['size'] / 1e6:.1f} MB"
            for level, one in words.items()
            if one is not None
        )
        fail = words["FAIL"]
        ok = fail is not None
        goal = f"before minute {small.refused_at:.0f}, when the server refused"
        report.target(f"doctor, {small.name}", goal, told or "nothing", ok)
    flat = growing[2].samples
    later = [sample["size"] for sample in flat if sample["minute"] >= asked.flat_after]
    if later:
        least, most = later[0] / 1e6, max(later) / 1e6
        goal = f"at most a quarter above its size at minute {asked.flat_after:g}"
        report.target(
            f"flat, {growing[2].name}", goal, f"{least:.1f} MB, then up to {most:.1f} MB", most <= 1.25 * least
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two samples (60)")
    parser.add_argument("--retention", default="5m", help="of --auto-compaction-retention (5m)")
    parser.add_argument("--keep", default="10m", help="history of the third server (10m)")
    parser.add_argument("--quota-mb", type=int, default=32, help="quota of the fourth server (32)")
    parser.add_argument(
        "--flat-after", type=float, default=25.0, help="minute from which the third is to stay flat (25)"
    )
    parser.add_argument("--out", default=str(ROOT / "build" / "bench"), help="where the figures go")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
