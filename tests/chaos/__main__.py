"""`make chaos`: five nodes on every store, every fault of the matrix, a table; exit 1 if all is not as promised."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.figures import HEAD, Figures, table
from tests.chaos.places import STORES, Place
from tests.chaos.scenarios import LEASE, beside, crowd, storm

KEPT = Path(__file__).resolve().parents[2] / "build" / "chaos"
SCENARIOS = ("storm", "crowd", "beside", "forgetful")


def main(argv: list[str] | None = None) -> int:
    options = _options(argv)
    stores = [name for name in STORES if name in (options.stores or STORES)]
    for name in list(stores):
        if hint := Place.missing(name):
            print(f"{name} is not installed: {hint}", file=sys.stderr)
            stores.remove(name)
    scenarios = options.only or list(SCENARIOS)
    KEPT.mkdir(parents=True, exist_ok=True)
    found: list[Figures] = []
    began = time.monotonic()
    if "beside" in scenarios:
        # Nearly idle, and long: all stores at once.
        with ThreadPoolExecutor(len(stores)) as pool:
            found += pool.map(lambda name: _perform("beside", name, options), stores)
    for name in stores:
        found += [_perform(scenario, name, options) for scenario in ("storm", "crowd") if scenario in scenarios]
    for figures in found:
        (KEPT / f"{figures.scenario}-{figures.store}.json").write_text(json.dumps(figures.to_json(), indent=1))
    for scenario in SCENARIOS:
        rows = [figures.row(LEASE) for figures in found if figures.scenario == scenario]
        if rows:
            print("", scenario, *table(HEAD, rows), sep="\n")
    for figures in found:
        for fault in figures.faults[:20]:
            print(f"{figures.store} {figures.scenario}: {fault}", file=sys.stderr)
    print(f"\n{sum(figures.slots for figures in found):,} slots in {time.monotonic() - began:.0f} s", flush=True)
    return 0 if found and all(figures.clean for figures in found) else 1


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("stores", nargs="*", choices=[[], *STORES], help=f"of {', '.join(STORES)} (all)")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="a scenario (all)")
    parser.add_argument("--seconds", type=float, default=45.0, help="under fire, in the storm (45)")
    parser.add_argument("--crowd-seconds", type=float, default=60.0, help="under fire, with 200 jobs (60)")
    parser.add_argument("--frozen", type=float, default=40.0, help="seconds that a node is frozen beside another (40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="do not tell each strike")
    return parser.parse_args(argv)


def _perform(scenario: str, name: str, options: argparse.Namespace) -> Figures:
    """One scenario on a store of its own; its folder stays where something is not as promised."""
    said = threading.Lock()

    def tell(text: str) -> None:
        with said:
            if not options.quiet:
                print(f"{name:9} {text}", flush=True)

    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{scenario}-{name}-"))
    print(f"{name:9} {scenario} ...", flush=True)
    with Place(name, small_disk=scenario == "storm") as place:
        if scenario == "storm":
            figures = storm(place, folder, seconds=options.seconds, seed=options.seed, tell=tell)
        elif scenario == "crowd":
            figures = crowd(place, folder, seconds=options.crowd_seconds, seed=options.seed, tell=tell)
        else:
            figures = beside(place, folder, frozen_for=options.frozen, tell=tell)
    if figures.clean:
        shutil.rmtree(folder)
    else:
        print(
            f"{name:9} {scenario} is NOT as promised; the nodes' logs, events and ledgers are in {folder}", flush=True
        )
    return figures


if __name__ == "__main__":
    sys.exit(main())
