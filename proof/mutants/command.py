"""`make mutants`: put every bug into the code, one after the other, and show which check noticed. Exit 1 if one lives.

Where worlds are drawn, each bug must die in several trials with seeds of their own; shown is the median of the seeds.
"""

from __future__ import annotations

import statistics
from argparse import ArgumentParser, Namespace

from proof.mutants.catalogue import MUTANTS, OF_POLICIES, WAITING
from proof.mutants.mutant import Verdict

__all__ = ["add_arguments", "execute"]

TRIALS = 3


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="BUG", help="such as X-01 (default: all)")


def execute(args: Namespace) -> int:
    names = args.names
    chosen = [mutant for mutant in (*MUTANTS, *OF_POLICIES) if not names or mutant.name in names]
    verdicts: list[Verdict] = []
    print(f"{'bug':5} {'named':11} {'killed by':28} {'seeds':>5} {'bites':>6} {'s':>5}  what", flush=True)
    for mutant in chosen:
        verdict = mutant.judge(TRIALS)
        verdicts.append(verdict)
        by = verdict.killed.by if verdict.killed else "ALIVE"
        took = f"{verdict.killed.seeds:g}" if verdict.killed else "-"
        print(
            f"{mutant.name:5} {mutant.invariant:11} {by:28.28} {took:>5} {verdict.bites:>6} {verdict.seconds:5.1f}  "
            f"{mutant.what}  [{mutant.suite.name}]",
            flush=True,
        )
    for waiting in WAITING if not names else []:
        print(f"{waiting.name:5} {waiting.invariant:11} waiting for {waiting.reason}: {waiting.what}")
    alive = [verdict.mutant.name for verdict in verdicts if not verdict.ok]
    seeds = [verdict.killed.seeds for verdict in verdicts if verdict.killed]
    print(
        f"{len(verdicts) - len(alive)} killed, {len(alive)} alive, {len(WAITING) if not names else 0} waiting; "
        f"median seeds {statistics.median(seeds) if seeds else 0:g}"
    )
    if alive:
        print(f"ALIVE: {', '.join(alive)}")
    return 1 if alive else 0
