"""`make chaos`: five nodes on every store, every fault of the matrix, a table; exit 1 if all is not as promised."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from proof.chaos import report
from proof.chaos.failover import failover
from proof.chaos.figures import HEAD, HEAD_OF_RETURN, Figures, table
from proof.chaos.forgetful import forgetful
from proof.chaos.outage import outage
from proof.chaos.places import STORES, Place
from proof.chaos.quorum import HEAD_OF_QUORUM, quorum, row_of_quorum
from proof.chaos.restore import restore
from proof.chaos.scenarios import LEASE, beside, crowd, storm
from proof.chaos.skewed import HEAD_OF_SKEWED, SKEW, row_of_skewed, skewed
from proof.chaos.skewed import STORES as SKEWED
from proof.chaos.storm import Tell
from proof.chaos.upgrade import upgrade
from proof.chaos.vaults import VAULTS
from tests.servers import OPTIONAL
from tests.servers.clusters import CLUSTERS
from tests.servers.seats import Wires

__all__ = ["add_arguments", "execute"]

RETURNS = ("failover-async", "failover-sync", "failover-kill", "restore")
"""Scenarios in which the store goes back."""
CLOCKS = ("skewed", "skewed-back")
"""Scenarios in which a member has a clock of its own."""
TABLED = ("beside", "outage", "storm", "crowd", "upgrade", "forgetful", "quorum", *CLOCKS)
SCENARIOS = (*TABLED, *RETURNS)
ONLY: Mapping[str, Collection[str]] = {
    "outage": [name for name in STORES if name != "azurite"],  # which forgets what it acknowledged when it is killed
    "upgrade": ("sqlite", "postgres", "mariadb", "redis", "valkey"),  # key stores have no schema to upgrade
    "forgetful": ("redis", "valkey"),
    "quorum": CLUSTERS,
    **dict.fromkeys(CLOCKS, SKEWED),
    "restore": VAULTS,
    **dict.fromkeys(("failover-async", "failover-sync", "failover-kill"), ("postgres",)),
}
"""The stores of each scenario that not all of them have."""


def execute(options: argparse.Namespace) -> int:
    # One that is installed only when it is named is asked for by being there.
    asked = options.stores or [name for name in STORES if name not in OPTIONAL or not Place.missing(name)]
    stores = [name for name in STORES if name in asked]
    lacking = {name: hint for name in stores if (hint := Place.missing(name))}
    for name, hint in lacking.items():
        print(f"{name} is not installed: {hint}", file=sys.stderr)
    stores = [name for name in stores if name not in lacking]
    scenarios = options.only or SCENARIOS
    if "quorum" in scenarios and (hint := Wires.missing()) and any(name in CLUSTERS for name in stores):
        lacking["quorum"] = hint
        print(f"the networks of the quorum cannot be made: {hint}", file=sys.stderr)
        scenarios = [scenario for scenario in scenarios if scenario != "quorum"]
    found: list[Figures] = []
    began = time.monotonic()
    for scenario in ("beside", "outage"):
        having = [name for name in stores if name in ONLY.get(scenario, STORES)]
        if scenario in scenarios and having:
            # Nearly idle, and long: all stores at once.
            with ThreadPoolExecutor(len(having)) as pool:
                found += pool.map(partial(_perform, scenario, options=options), having)
    for name in stores:
        found += [
            _perform(scenario, name, options)
            for scenario in SCENARIOS[2:]
            if scenario in scenarios and name in ONLY.get(scenario, STORES)
        ]
    for figures in found:
        report.keep(figures)
    for scenario in TABLED:
        apart = ("outage", "quorum", *CLOCKS)
        rows = [figures.row() for figures in found if figures.scenario == scenario not in apart]
        if rows:
            print("", scenario, *table(HEAD, rows), sep="\n")
    if rows := [row_of_quorum(figures) for figures in found if figures.scenario == "quorum" and figures.returns]:
        print("", "three members, the leader hurt", *table(HEAD_OF_QUORUM, rows), sep="\n")
    if rows := [row_of_skewed(figures) for figures in found if figures.scenario in CLOCKS and figures.notes]:
        print("", "three members, the clock of one is off", *table(HEAD_OF_SKEWED, rows), sep="\n")
    if rows := [figures.row_of_return() for figures in found if figures.scenario in RETURNS]:
        print("", "the store goes back", *table(HEAD_OF_RETURN, rows), sep="\n")
    for figures in found:
        if not figures.clean:
            print(
                f"{figures.store} {figures.scenario}: {len(figures.faults)} not as promised, see above", file=sys.stderr
            )
    print(f"\n{sum(figures.slots for figures in found):,} slots in {time.monotonic() - began:.0f} s", flush=True)
    if options.report:
        report.write(report.kept())
    return 0 if found and not lacking and all(figures.clean for figures in found) else 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stores", nargs="*", type=_store, metavar="store", help=f"of {', '.join(STORES)} (all)")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="a scenario (all)")
    parser.add_argument("--seconds", type=float, default=45.0, help="under fire, in the storm (45)")
    parser.add_argument(
        "--crowd-seconds", type=float, default=60.0, help="under fire, with 200 jobs, and with two releases (60)"
    )
    parser.add_argument("--frozen", type=float, default=40.0, help="seconds that a node is frozen beside another (40)")
    parser.add_argument(
        "--lease", type=float, default=LEASE, help="of the nodes in storm and crowd; more on a busy machine (3)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="do not tell each strike")
    parser.add_argument("--report", action="store_true", help="write the figures into docs/explanation/chaos.md")


def _store(name: str) -> str:
    if name not in STORES:
        raise argparse.ArgumentTypeError(f"no such store: {name}; there are {', '.join(STORES)}")
    return name


def _perform(scenario: str, name: str, options: argparse.Namespace) -> Figures:
    """Play one scenario on a store of its own; its folder stays where something is not as promised.

    An exception is a result too: the other stores still have their turn.
    """
    said = threading.Lock()

    def tell(text: str) -> None:
        with said:
            if not options.quiet:
                print(f"{name:9} {text}", flush=True)

    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{scenario}-{name}-"))
    print(f"{name:9} {scenario} ...", flush=True)
    try:
        figures = _act(scenario, name, folder, options, tell)
    except Exception as error:
        traceback.print_exc()
        figures = Figures(store=name, scenario=scenario, faults=[f"the scenario broke off: {error!r}"[:500]])
    if figures.clean:
        shutil.rmtree(folder)
    else:
        print(f"{name:9} {scenario} is NOT as promised; logs, events and ledgers are in {folder}", flush=True)
        for fault in figures.faults[:20]:
            print(f"{name:9} {fault}", flush=True)
    return figures


def _act(scenario: str, name: str, folder: Path, options: argparse.Namespace, tell: Tell) -> Figures:
    if scenario == "forgetful":
        return forgetful(name, folder, tell=tell)
    if scenario == "quorum":
        return quorum(name, folder, tell=tell)
    if scenario in CLOCKS:
        return skewed(name, folder, tell=tell, skew=SKEW if scenario == "skewed" else -SKEW)
    if scenario == "restore":
        return restore(name, folder, tell=tell)
    if scenario in RETURNS:
        return failover(folder, tell=tell, synchronous=scenario == "failover-sync", kill=scenario == "failover-kill")
    with Place(name, small_disk=scenario == "storm") as place:
        if scenario == "storm":
            figures = storm(place, folder, seconds=options.seconds, seed=options.seed, tell=tell, lease=options.lease)
        elif scenario == "crowd":
            seconds = options.crowd_seconds
            figures = crowd(place, folder, seconds=seconds, seed=options.seed, tell=tell, lease=options.lease)
        elif scenario == "upgrade":
            figures = upgrade(place, folder, seconds=options.crowd_seconds, seed=options.seed, tell=tell)
        elif scenario == "outage":
            figures = outage(place, folder, tell=tell)
        else:
            figures = beside(place, folder, frozen_for=options.frozen, tell=tell)
        figures.version = place.version()
    return figures
