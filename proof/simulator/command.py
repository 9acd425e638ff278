"""`python -m proof simulate`: run simulated worlds, report their coverage, and how to replay a failure."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from proof.simulator.campaign import Failure, Summary, shrink
from proof.simulator.coverage import POLICIES
from proof.simulator.options import FAULTS, Options, draw
from proof.simulator.world import simulate as one_world
from solocron.cli import output
from solocron.cli.arguments import add_json, count
from solocron.cli.exits import FAILED, OK
from solocron.errors import InvalidError, SolocronError

__all__ = ["add_arguments", "execute"]

ROOT = Path(__file__).resolve().parents[2]

Told = dict[str, Any]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", metavar="N", type=count, default=20, help="how many worlds (default: 20)")
    parser.add_argument("--from", dest="start", metavar="SEED", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seed", metavar="SEED", type=int, help="only this world, as a failure names it")
    parser.add_argument("--nodes", metavar="N", type=count, default=5, help="nodes of each world (default: 5)")
    parser.add_argument(
        "--hours", metavar="H", type=_hours, default=0.5, help="hours under fire at a lease of 15 s (default: 0.5)"
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", help="an option of every world, such as kill=0 or lease=3"
    )
    parser.add_argument("--jobs", metavar="N", type=count, default=1, help="processes to use (default: 1)")
    parser.add_argument(
        "--no-shrink",
        dest="shrink",
        action="store_false",
        help="show a failure as it is, without looking for a smaller one",
    )
    parser.add_argument("--lines", action="store_true", help="print one line of JSON a world, as it ends")
    add_json(parser)


def execute(args: Namespace) -> int:
    settings = _settings(args.set or [])
    seeds = [args.seed] if args.seed is not None else list(range(args.start, args.start + args.seeds))
    if args.lines:
        for seed in seeds:
            print(json.dumps(one_world(_options(seed, args, settings)).to_json()), flush=True)
        return OK
    summary, began = Summary(), time.monotonic()
    with _progress(len(seeds), args) as advance:
        for told in _worlds(seeds, args, settings):
            summary.add(told)
            advance(summary)
    summary.seconds = time.monotonic() - began
    if args.shrink:
        summary.failures[:1] = [_shrunk(failure) for failure in summary.failures[:1]]
    ok = summary.ok(alone=args.seed is not None)
    if args.json:
        output.dump({"ok": ok, **summary.to_json()})
    else:
        _show(summary, ok=ok, alone=args.seed is not None)
    return OK if ok else FAILED


def _settings(given: list[str]) -> dict[str, str]:
    settings = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidError(f"--set {pair}: say name=value, such as --set kill=0.")
        settings[name.strip()] = value.strip()
    Options(seed=0).changed(settings)  # every world would say the same
    return settings


def _options(seed: int, args: Namespace, settings: dict[str, str]) -> Options:
    return draw(seed, nodes=args.nodes, hours=args.hours).changed(settings)


def _hours(value: str) -> float:
    hours = float(value)
    if not 0 < hours <= 10_000:
        raise ValueError(value)
    return hours


_hours.__name__ = "number of hours above 0"  # argparse puts the name of the type into its message


# --- worlds, here or in processes of their own


def _worlds(seeds: list[int], args: Namespace, settings: dict[str, str]) -> Iterator[Told]:
    if args.jobs == 1 or len(seeds) == 1:
        for seed in seeds:
            yield one_world(_options(seed, args, settings)).to_json()
        return
    yield from _in_processes(seeds, args, settings)


def _in_processes(seeds: list[int], args: Namespace, settings: dict[str, str]) -> Iterator[Told]:
    """Simulate in child processes; each takes its share of the seeds and prints one line of JSON a world."""
    told: SimpleQueue[Told | None] = SimpleQueue()
    shares = min(args.jobs, len(seeds))
    bounds = [len(seeds) * part // shares for part in range(shares + 1)]
    children = []
    for first, last in pairwise(bounds):
        command = [sys.executable, "-m", "proof", "simulate", "--lines", "--from", str(seeds[first])]
        command += ["--seeds", str(last - first), "--nodes", str(args.nodes), "--hours", str(args.hours)]
        command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        children.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
    readers = [Thread(target=_read, args=(child, told), daemon=True) for child in children]
    for reader in readers:
        reader.start()
    try:
        left = shares
        while left:
            line = told.get()
            if line is None:
                left -= 1
            else:
                yield line
        for child in children:
            if child.wait() != OK:
                raise SolocronError(
                    f"a child process ended with {child.returncode}; its worlds were not all simulated."
                )
    finally:
        for child in children:
            child.kill()
            child.wait()
        for reader in readers:
            reader.join()


def _read(child: subprocess.Popen[str], told: SimpleQueue[Told | None]) -> None:
    assert child.stdout is not None
    with child.stdout as lines:
        for line in lines:
            told.put(json.loads(line))
    told.put(None)


def _shrunk(failure: Failure) -> Failure:
    options = Options(**failure.options)
    with output.waiting(f"seed {failure.seed} failed; cutting faults to see which it takes"):
        smaller = shrink(options, failure.invariant)
    return replace(failure, shrunk=smaller.command()) if smaller != options else failure


# --- what people see


@contextmanager
def _progress(total: int, args: Namespace) -> Iterator[Any]:
    """Show a progress bar on a terminal."""
    if args.json or not sys.stderr.isatty():
        yield lambda summary: None
        return
    began = time.monotonic()

    def advance(summary: Summary) -> None:
        done, width = summary.seeds, 30
        bar = "#" * (width * done // total)
        rate = summary.hours / max(time.monotonic() - began, 1e-9)
        bad = f"  {len(summary.failures)} FAILED" if summary.failures else ""
        text = f"\r[{bar:<{width}}] {done}/{total} worlds  {summary.slots} slots  {rate:.2f} h/s{bad} "
        print(text, end="", file=sys.stderr, flush=True)

    yield advance
    print(file=sys.stderr)


def _show(summary: Summary, *, ok: bool, alone: bool) -> None:
    missing = [] if alone else summary.missing

    def row(name: str, *counts: int) -> list[str]:
        return [name, *map(str, counts), "FAIL" if name in missing else "OK" if counts[-1] else ""]

    on = [name for name in FAULTS if summary.enabled[name]]
    rows = [row(name, summary.enabled[name], summary.faults[name]) for name in on]
    output.table(["fault", " worlds", " times", ""], rows)
    output.say("")
    had = [name for name in POLICIES if summary.had[name] or name in missing]
    rows = [row(name, summary.had[name], summary.used[name]) for name in had]
    output.table(["policy", " worlds", " times", ""], rows)
    output.say("")
    output.table(["invariant", " checks", ""], [row(name, summary.checked[name]) for name in summary.invariants])
    output.say("")
    for failure in summary.failures:
        _tell(failure)
    output.pairs(_figures(summary))
    output.labelled("OK" if ok else "FAIL", _verdict(summary, alone=alone))


def _tell(failure: Failure) -> None:
    output.labelled("FAIL", f"seed {failure.seed}: {failure.violation}")
    on = {name: failure.options[name] for name in FAULTS if failure.options[name]}
    output.say("options: " + ", ".join(f"{name}={value:g}" for name, value in on.items()))
    for line in failure.tail:
        output.say(f"  {line}")
    output.say(f"replay:  {failure.command}")
    if failure.shrunk is not None:
        output.say(f"smaller: {failure.shrunk}")
    output.say("")


def _figures(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("seeds", str(summary.seeds)),
        ("simulated hours", f"{summary.hours:.1f}"),
        ("slots", str(summary.slots)),
        ("runs", str(summary.runs)),
        ("bodies started", str(summary.starts)),
        ("steps", str(summary.steps)),
        ("duplicates", str(summary.duplicates)),
        ("losses", str(summary.losses)),
        ("stale writes accepted", str(summary.stale_writes)),
        ("violations", str(len(summary.failures))),
        ("seeds/s", f"{summary.seeds / max(summary.seconds, 1e-9):.2f}"),
        ("simulated hours/s", f"{summary.hours / max(summary.seconds, 1e-9):.2f}"),
    ]


def _verdict(summary: Summary, *, alone: bool) -> str:
    if summary.failures:
        return f"{len(summary.failures)} of {summary.seeds} worlds broke an invariant"
    if not alone and summary.silent:
        return f"nothing broke, but these faults never struck: {', '.join(summary.silent)}"
    if not alone and summary.unused:
        return f"nothing broke, but these policies were never used: {', '.join(summary.unused)}"
    if not alone and summary.unchecked:
        return f"nothing broke, but these invariants were never put to the test: {', '.join(summary.unchecked)}"
    return "every invariant held"
