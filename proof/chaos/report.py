"""Writes the figures of the last runs into docs/explanation/chaos.md, between its two marks.

The page is also where they are kept: what was not played again, in a fresh clone for instance, stays as it was.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from proof.chaos.figures import HEAD, HEAD_OF_RETURN, Figures, table
from proof.chaos.places import STORES
from proof.chaos.quorum import HEAD_OF_QUORUM, row_of_quorum
from proof.chaos.quorum import LEASE as QUORUM_LEASE
from proof.chaos.scenarios import ALL_FAULTS, LEASE
from proof.chaos.skewed import HEAD_OF_SKEWED, row_of_skewed
from proof.chaos.storm import COMBINED

__all__ = ["KEPT", "failed", "keep", "kept", "shown", "write"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "chaos.md"
KEPT = ROOT / "build" / "chaos"
HISTORY = KEPT / "history.jsonl"
"""Every result there was; a run that is repeated until it suits is no proof."""
BEGIN, END = "<!-- figures: written by `make chaos` -->", "<!-- end of figures -->"
RAW = "Raw summary:"


def keep(figures: Figures) -> None:
    """Leave the result of one scenario on one store where the report finds it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    figures.made = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit `{_commit()}`, load average {os.getloadavg()[1]:.1f}"
    )
    file = KEPT / f"{figures.scenario}-{figures.store}.json"
    file.write_text(json.dumps(figures.to_json(), indent=1), encoding="utf-8")
    with HISTORY.open("a", encoding="utf-8") as book:
        book.write(json.dumps(figures.to_json()) + "\n")


def kept() -> list[Figures]:
    """The last result of each scenario on each store: of this checkout, or else the one that the page shows."""
    here = [Figures.from_json(json.loads(file.read_text(encoding="utf-8"))) for file in KEPT.glob("*-*.json")]
    found: dict[tuple[int, str], Figures] = {}
    for figures in sorted((*shown(), *here), key=lambda one: one.made):
        found[STORES.index(figures.store), figures.scenario] = figures
    return [found[which] for which in sorted(found)]


def shown() -> list[Figures]:
    """What the page shows, from its raw summary."""
    text = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].partition(RAW)[2]
    return [Figures.from_json(json.loads(line)) for line in text.splitlines() if line.startswith("{")]


def failed() -> list[Figures]:
    """Every result that was not as promised, also where a later one has taken its place."""
    if not HISTORY.exists():
        return []
    told = [Figures.from_json(json.loads(line)) for line in HISTORY.read_text(encoding="utf-8").splitlines()]
    return [figures for figures in told if not figures.clean]


def write(found: Sequence[Figures]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the figures: {BEGIN} ... {END}")
    PAGE.write_text(f"{before}{begin}\n\n" + "\n".join(_lines(found)) + f"\n\n{end}{after}", encoding="utf-8")


def _lines(found: Sequence[Figures]) -> list[str]:
    of = {
        name: [figures for figures in found if figures.scenario == name]
        for name in ("storm", "crowd", "upgrade", "beside")
    }
    wrong = [f"{figures.store}, {figures.scenario}: {fault}" for figures in found for fault in figures.faults]
    lines = [
        f"Written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC on {_machine()}; lease {LEASE:g} s, five nodes. "
        + "; ".join(sorted({f.version for f in found if f.version}))
        + ".",
        "",
        "**Everything below is as promised.**" if not wrong else f"**Not as promised: {'; '.join(wrong[:5])}.**",
    ]
    if repeated := [one for one in failed() if one.to_json() not in [other.to_json() for other in found]]:
        lines += ["", "Earlier results that were not, and whose scenario was repeated:", ""]
        lines += [f"- {one.store}, {one.scenario} ({one.made}): {'; '.join(one.faults[:3])}" for one in repeated]
    if of["storm"]:
        lines += ["", "The storm, every fault that the store can meet:", "", *_table(HEAD, of["storm"])]
        lines += ["", "How often each struck (a dash: not on this store):", "", *_strikes(of["storm"])]
    if of["crowd"]:
        lines += ["", "The crowd, 200 jobs every second:", "", *_table(HEAD, of["crowd"])]
    if of["upgrade"]:
        lines += [
            "",
            "Two releases side by side, the second with a schema of its own:",
            "",
            *_table(HEAD, of["upgrade"]),
        ]
    if of["beside"]:
        lines += [
            "",
            f"A node frozen for {of['beside'][0].seconds:g} s beside a healthy one:",
            "",
            *_beside(of["beside"]),
        ]
    if hurt := [figures for figures in found if figures.scenario == "quorum" and figures.returns]:
        lines += [
            "",
            f"Three members, each in a network of its own, and three nodes with a lease of {QUORUM_LEASE:g} s: the",
            "leader is killed, frozen, cut off from the other members while nodes still reach it, cut off from all,",
            "and killed at the moment at which a node dies. Seconds without a start; the jobs are due every second:",
            "",
            *table(HEAD_OF_QUORUM, [row_of_quorum(figures) for figures in hurt]),
        ]
    if off := [figures for figures in found if figures.scenario.startswith("skewed") and figures.notes]:
        lines += [
            "",
            "Three members, one of them with a clock that is off: of ZooKeeper for real (libfaketime), of etcd by a",
            "relay that shifts the time in its replies. Its node and another are killed, then it and another member:",
            "",
            *table(HEAD_OF_SKEWED, [row_of_skewed(figures) for figures in off]),
        ]
    if returns := [figures for figures in found if figures.seconds_lost]:
        rows = [figures.row_of_return() for figures in returns]
        lines += ["", "The store goes back under living nodes:", "", *table(HEAD_OF_RETURN, rows)]
    if away := [figures for figures in found if figures.scenario == "outage"]:
        lines += [
            "",
            "The store away for less than a lease of 15 s, until the next start (bound 6 s, and 16 s on Redis and",
            "Valkey, where another server answers after a restart):",
            "",
        ]
        lines += [f"- {figures.store}: {'; '.join(figures.notes)}" for figures in away]
    for figures in found:
        if figures.scenario == "forgetful":
            lines += ["", f"{figures.store} without an append-only file, kill -9 of the server: {figures.losses} of "]
            lines[-1] += f"{figures.slots} acknowledged writes gone. What was said before:"
            lines += ["", "```text", *figures.notes, "```"]
    lines += ["", "When each was made:", "", *table(("scenario", "store", "made"), [_made(one) for one in found])]
    raw = [{**figures.to_json(), "takeovers": figures.summary()} for figures in found]
    return [*lines, "", RAW, "", "```text", *(json.dumps(one, sort_keys=True) for one in raw), "```"]


def _made(figures: Figures) -> tuple[str, str, str]:
    return figures.scenario, figures.store, figures.made


def _table(head: Sequence[str], found: Sequence[Figures]) -> list[str]:
    return table(head, [figures.row() for figures in found])


def _strikes(found: Sequence[Figures]) -> list[str]:
    names = {fault.number: fault.name for fault in ALL_FAULTS} | {COMBINED: "three of these at once"}
    numbers = sorted(names, key=lambda number: int(number[1:]))
    rows = [
        (
            number,
            names[number],
            *(f"{figures.struck[number]:,}" if number in figures.struck else "-" for figures in found),
        )
        for number in numbers
    ]
    return table(("", "fault", *(figures.store for figures in found)), rows)


def _beside(found: Sequence[Figures]) -> list[str]:
    rows = [
        (figures.store, f"{figures.slots:,}", str(figures.duplicates), str(figures.losses), str(figures.stale_refused))
        for figures in found
    ]
    return table(("store", "slots", "run again after the freeze", "lost", "its old results, refused"), rows)


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores and {memory:.0f} GB ({platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()})"
    )


def _commit() -> str:
    ask = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
