"""The long gate: a thousand worlds, a million slots, ten thousand simulated hours, and nothing broken.

Goes on where it was interrupted: each range of seeds leaves a file, in a folder named for the very code that was put to
the test, so that results of other code never count. `--report` writes what there is into docs/explanation/proof.md, and
another clone goes on from there. Nine worlds of ten cannot run the code of the commit chain: a change of it leaves
their results as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proof.simulator.campaign import Summary

__all__ = ["APART", "CHAIN", "PARTS", "PROVED", "Part", "add_arguments", "execute", "proved"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "proof.md"
KEPT = ROOT / "build" / "proof"
RANGE = 10
BEGIN, END = "<!-- figures: written by `make proof` -->", "<!-- end of figures -->"

PROVED = ("src/solocron", "proof/simulator", "proof/workloads", "proof/oracles", "proof/invariants")
"""The code that runs in a simulated world, and the code that judges it."""

APART = (
    *(f"src/solocron/{place}" for place in ("__main__.py", "alembic.py", "cli", "demo", "doctor", "importers")),
    *(f"src/solocron/{place}" for place in ("carriers", "django", "flask.py", "gunicorn.py", "http_tick")),
    *(f"src/solocron/{place}" for place in ("kubernetes", "preview", "process.py", "service")),
    *(f"src/solocron/stores/{place}" for place in ("certificates.py", "redis", "sql")),
    *(f"src/solocron/stores/swap/{place}" for place in ("dynamodb", "etcd", "mongodb", "nats", "zookeeper")),
    *(f"src/solocron/stores/swap/{place}" for place in ("address.py", "http_wire.py", "mirrored.py")),
    *(f"src/solocron/stores/swap/chain/{place}" for place in ("azure", "firebase", "kubernetes", "s3")),
    *(f"src/solocron/stores/swap/chain/{place}" for place in ("http.py", "service.py")),
    *(f"src/solocron/testing/{place}" for place in ("conformance", "faults", "fleet")),
    *(f"src/solocron/testing/{place}" for place in ("_relay.py", "_wire.py", "proxy.py")),
    *(f"proof/simulator/{place}" for place in ("campaign.py", "command.py")),
)
"""Code below those places that no simulated world runs: results stay valid when it changes. A list of what counts
would be the shorter one, but a module that is missing there makes old results pass for results of new code."""

CHAIN = ("src/solocron/stores/swap/chain", "src/solocron/testing/simulation/chain_wire.py")
"""Code that runs only in worlds whose store is a commit chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Worlds that run the same code: those at the same places of every range of seeds."""

    name: str
    skipped: int
    """Seeds at the beginning of a range that are not of this part."""
    seeds: int
    without: tuple[str, ...] = ()
    """Proved code that none of these worlds runs."""

    def finished(self, worlds: int) -> int:
        """Return how many ranges so many worlds are; a part of a range does not count."""
        return worlds // self.seeds if worlds % self.seeds == 0 else 0


PARTS = (
    Part(name="most", skipped=0, seeds=RANGE - 1, without=CHAIN),
    Part(name="chains", skipped=RANGE - 1, seeds=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=1_000, help="how many worlds, in tens (default: 1000)")
    parser.add_argument("--hours", type=float, default=0.25, help="hours under fire at a lease of 15 s (default: 0.25)")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="processes to use (default: 1)")
    parser.add_argument("--report", action="store_true", help="write the figures into docs/explanation/proof.md")


def execute(args: argparse.Namespace) -> int:
    found = _published(PAGE.read_text(encoding="utf-8"), args)
    for told in _run(args, found):
        print(
            f"{told['part']} of seeds {told['first']} to {told['first'] + RANGE - 1}: "
            f"{told['hours']:.0f} h, {told['slots']} slots, "
            f"{told['violations']} violations, {told['seconds']:.0f} s",
            flush=True,
        )
    for part in PARTS:
        _add_finished(part, _folder(part, args), found[part.name])
    summary = _sum(found)
    missing = _missing(summary)
    print(json.dumps({name: value for name, value in summary.to_json().items() if not isinstance(value, dict | list)}))
    if args.report:
        PAGE.write_text(_written(PAGE.read_text(encoding="utf-8"), found, missing, args), encoding="utf-8")
    for text in missing:
        print(f"not proved: {text}", file=sys.stderr)
    return 1 if missing else 0


def _fingerprint(part: Part) -> str:
    """Return a name for the code of a part: results of equal code may be added up, others not."""
    made = hashlib.blake2b(digest_size=6)
    for file in proved(part):
        made.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return made.hexdigest()


def proved(part: Part) -> list[Path]:
    """Return the files that the fingerprint of a part covers."""
    apart = [ROOT / place for place in (*APART, *part.without)]
    files = sorted(file for place in PROVED for file in (ROOT / place).rglob("*.py"))
    return [file for file in files if not any(file == place or place in file.parents for place in apart)]


def _folder(part: Part, args: argparse.Namespace) -> Path:
    return KEPT / f"{part.name}-{_fingerprint(part)}-{args.nodes}x{args.hours:g}h"


def _file(folder: Path, first: int) -> Path:
    return folder / f"seeds-{first:06}.json"


def _run(args: argparse.Namespace, published: Mapping[str, Summary]) -> Iterator[dict[str, Any]]:
    """Run what is after the published ranges and has no result yet; yield the results as they end."""
    missing = []
    for part in PARTS:
        folder = _folder(part, args)
        folder.mkdir(parents=True, exist_ok=True)
        begin = part.finished(published[part.name].seeds) * RANGE
        missing += [(first, part) for first in range(begin, args.seeds, RANGE) if not _file(folder, first).exists()]
    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        missing.sort(key=lambda one: one[0])
        pending = [pool.submit(_one, args, part, first) for first, part in missing]
        try:
            for done in as_completed(pending):
                yield done.result()
        finally:
            for one in pending:
                one.cancel()


def _one(args: argparse.Namespace, part: Part, first: int) -> dict[str, Any]:
    """Run the worlds of a part that are in one range."""
    file = _file(_folder(part, args), first)
    command = [sys.executable, "-m", "proof", "simulate", "--json", "--no-shrink", "--from", str(first + part.skipped)]
    command += ["--seeds", str(part.seeds), "--hours", str(args.hours), "--nodes", str(args.nodes)]
    seen = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    told: dict[str, Any] = json.loads(seen.stdout) | {"first": first, "part": part.name}
    half = file.with_suffix(".part")
    half.write_text(json.dumps(told, indent=1), encoding="utf-8")
    half.replace(file)
    return told


def _add_finished(part: Part, folder: Path, summary: Summary) -> None:
    """Add the ranges that follow the published ones without a gap: a page says how many, not which."""
    while (file := _file(folder, part.finished(summary.seeds) * RANGE)).exists():
        summary.merge(json.loads(file.read_text(encoding="utf-8")))


def _sum(found: Mapping[str, Summary]) -> Summary:
    summary = Summary()
    for part in PARTS:
        summary.merge(found[part.name].to_json())
    return summary


def _published(page: str, args: argparse.Namespace) -> dict[str, Summary]:
    """Return the figures on the page by part, where they are of this code and these worlds.

    What was published with a failure does not count: the worlds that failed are run again.
    """
    found, figures = {part.name: Summary() for part in PARTS}, page.partition(BEGIN)[2].partition(END)[0]
    if not figures.lstrip().startswith("Written ") or _worlds(args) not in figures:
        return found
    told = json.loads(figures.partition("```text\n")[2].partition("\n```")[0])
    for part in PARTS:
        one = told.get(part.name, {"code": None})
        if one["code"] == _fingerprint(part) and not one["failures"] and part.finished(one["seeds"]):
            found[part.name].merge(one)
    return found


def _worlds(args: argparse.Namespace) -> str:
    """Return the words of the page that name the worlds."""
    return f"{args.nodes} nodes, {args.hours * 240:.0f} leases under fire"


def _missing(summary: Summary) -> list[str]:
    """Return what the gate asks for and the figures do not show."""
    found = []
    for name, least, has in (
        ("seeds", 1_000, summary.seeds),
        ("slots", 1_000_000, summary.slots),
        ("simulated hours", 10_000, summary.hours),
    ):
        if has < least:
            found.append(f"{has:.0f} {name} of {least}")
    found += [f"seed {failure.seed}: {failure.violation}" for failure in summary.failures]
    found += [f"{fault} never struck" for fault in summary.silent]
    found += [f"{name} was never used" for name in summary.unused]
    found += [f"{name} was never put to the test" for name in summary.unchecked]
    return found


def _written(page: str, found: Mapping[str, Summary], missing: list[str], args: argparse.Namespace) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the figures: {BEGIN} ... {END}")
    summary = _sum(found)
    told = summary.to_json()
    codes = {part.name: _fingerprint(part) for part in PARTS}
    raw = {name: found[name].to_json() | {"code": code} for name, code in codes.items()}
    lines = [
        "",
        f"Written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit `{_commit()}`, code `{codes['most']}` with the commit "
        f"chain `{codes['chains']}`; {_worlds(args)} in each world, then healing, a death in peace, and drain.",
        "",
        f"**{'The gate is met.' if not missing else 'The gate is not met yet: ' + '; '.join(missing[:5]) + '.'}**",
        "",
        *_table(("", ""), _figures(summary)),
        "",
        "Hours are cheap in slow worlds and slots in dense ones, so here they are by the lease of the nodes:",
        "",
        *_table(("lease", "worlds", "simulated hours", "slots"), _by_lease(summary)),
        "",
        *_table(
            ("fault", "worlds", "times"),
            [(name, f"{f['worlds']:,}", f"{f['times']:,}") for name, f in told["faults"].items() if f["worlds"]],
        ),
        "",
        *_table(
            ("policy", "worlds", "times"),
            [(name, f"{p['worlds']:,}", f"{p['times']:,}") for name, p in told["policies"].items()],
        ),
        "",
        *_table(("invariant", "checks"), [(name, f"{count:,}") for name, count in told["invariants"].items()]),
        "",
        "Raw summary:",
        "",
        "```text",
        json.dumps(raw, sort_keys=True),
        "```",
        "",
    ]
    return f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}"


def _figures(summary: Summary) -> list[tuple[str, str]]:
    ends = ", ".join(f"{name} {count:,}" for name, count in sorted(summary.statuses.items()))
    return [
        ("worlds (seeds)", f"{summary.seeds:,}"),
        ("simulated hours", f"{summary.hours:,.0f}"),
        ("slots", f"{summary.slots:,}"),
        ("runs", f"{summary.runs:,}"),
        ("bodies started", f"{summary.starts:,}"),
        ("steps of the simulation", f"{summary.steps:,}"),
        ("duplicates", str(summary.duplicates)),
        ("losses", str(summary.losses)),
        ("stale writes accepted", str(summary.stale_writes)),
        ("invariants broken", str(len(summary.failures))),
        ("how attempts and slots ended", ends),
        ("computing time", f"{summary.seconds / 3600:.1f} h"),
    ]


def _by_lease(summary: Summary) -> list[tuple[str, ...]]:
    return [
        (f"{lease} s", f"{lived['worlds']:,}", f"{lived['ms'] / 3_600_000:,.0f}", f"{lived['slots']:,}")
        for lease, lived in sorted(summary.leases.items(), key=lambda one: float(one[0]))
    ]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, tuple("---" for _ in head), *rows)]


def _commit() -> str:
    ask = ["git", "rev-parse", "--short", "HEAD"]
    seen = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=False)
    return seen.stdout.strip() or "unknown"
