"""`python -m bench [scenario ...]`: prints tables, keeps the raw figures, exits with 1 where a check failed."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

from bench.environments import PEERS
from bench.page import write_pages
from bench.plot import plots
from bench.processes import ROOT
from bench.report import Report, machine, write
from bench.scenarios import Bench
from bench.servers import STORES, SWAP, Servers

SCENARIOS = {
    "burst": "burst",
    "nodes": "nodes",
    "lateness": "lateness",
    "statements": "statements",
    "idle": "idle",
    "peers": "peers",
    "scale": "scale",
    "fair": "fair",
    "takeover": "takeover",
    "memory": "memory",
    "import": "imports",
    "next": "nexts",
    "start": "start",
    "service": "service",
    "handover": "handover",
    "swap": "swap",
}


def main() -> int:
    asked = _arguments()
    folder = Path(asked.out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    reports: list[Report] = []
    failed: list[str] = []
    with Servers(folder) as servers:
        facts = machine(servers.version(store) for store in asked.stores)
        bench = Bench(
            servers=servers,
            folder=folder,
            quick=asked.quick,
            thorough=asked.thorough,
            repeat=asked.repeat,
            stores=tuple(asked.stores),
            peers=tuple(asked.peers),
        )
        for name in asked.scenarios or SCENARIOS:
            began = time.monotonic()
            print(f"... {name}", file=sys.stderr, flush=True)
            try:
                report: Report = import_module(f"bench.scenarios.{SCENARIOS[name]}").run(bench)
            except Exception:  # noqa: BLE001 - one scenario that fails must not cost the others' figures
                failed.append(name)
                traceback.print_exc()
                continue
            reports.append(report)
            print(report.text(), flush=True)
            print(f"... {name} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            write(reports, facts, folder)
    plots(reports, folder)
    if asked.page:
        write_pages(folder, SCENARIOS, [report.name for report in reports])
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help=f"one of {', '.join(SCENARIOS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, a few minutes in all")
    parser.add_argument("--thorough", action="store_true", help="every size, node count and peer: an hour or more")
    parser.add_argument("--page", action="store_true", help="write the figures into the pages of the docs")
    parser.add_argument("--repeat", type=int, default=1, help="repetitions, of which the quietest counts")
    parser.add_argument("--stores", nargs="+", default=list(STORES), choices=(*STORES, *SWAP))
    parser.add_argument("--peers", nargs="+", default=[], choices=sorted(PEERS), help="only these peers")
    parser.add_argument("--out", default=str(ROOT / "build" / "bench"), help="where figures and environments go")
    asked = parser.parse_args()
    unknown = [name for name in asked.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {unknown[0]!r}; known are {', '.join(SCENARIOS)}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
