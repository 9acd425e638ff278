"""Writes what was measured into the pages of the docs: targets, tables and plots, with machine and date.

What the service costs stands in docs/reference/dashboard.md, everything else in docs/explanation/performance.md. A page
of which nothing was measured is left alone. On one that is written, every scenario that has left its JSON is shown,
each with the commit and date of its own run: one may be measured again without the others.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from bench.processes import ROOT
from bench.report import Table

__all__ = ["BEGIN", "END", "PAGE", "PAGES", "figures_of", "write_pages"]

PAGE = ROOT / "docs" / "explanation" / "performance.md"
PAGES = {"service": ROOT / "docs" / "reference" / "dashboard.md"}
"""The pages of scenarios that have one of their own."""
BEGIN, END = "<!-- figures: written by `make bench` -->", "<!-- end of figures -->"
PLOTS = {
    "burst": (
        ("burst-rate", "Runs per second by jobs due at once"),
        ("burst-lateness", "Lateness by jobs due at once"),
    ),
    "nodes": (("nodes", "Runs per second by nodes"),),
    "scale": (("scale", "Cost by stored schedules"),),
}


def write_pages(folder: Path, names: Iterable[str], measured: Collection[str]) -> None:
    """Put the figures of a folder between the marks of each page on which something was measured now."""
    of_page: dict[Path, list[str]] = {}
    for name in names:
        of_page.setdefault(PAGES.get(name, PAGE), []).append(name)
    for page, scenarios in of_page.items():
        if not set(scenarios).isdisjoint(measured):
            _write_page(page, folder, scenarios)


def _write_page(page: Path, folder: Path, names: Iterable[str]) -> None:
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page.name} has no place for the figures: {BEGIN} ... {END}")
    kept = [json.loads(path.read_text()) for name in names if (path := folder / f"{name}.json").exists()]
    plots = page.parent / "performance"
    for report in kept:
        for name, _ in PLOTS.get(report["name"], ()):
            if (folder / f"{name}.svg").exists():
                plots.mkdir(exist_ok=True)
                shutil.copyfile(folder / f"{name}.svg", plots / f"{name}.svg")
    page.write_text(f"{before}{begin}\n\n{figures_of(kept, plots)}\n{end}{after}", encoding="utf-8")


def figures_of(reports: list[dict[str, Any]], plots: Path) -> str:
    """The text between the marks."""
    if not reports:
        return "Nothing has been measured yet.\n"
    lines = [*_machine(reports[-1]["machine"]), ""]
    targets = Table("", ("figure", "target", "reached", "", "scenario"))
    for report in reports:
        for one in report["targets"]:
            mark = "yes" if one["ok"] else "**no**"
            targets.add(one["figure"], one["goal"], one["reached"], mark, f"`{report['name']}`")
    if targets.rows:
        lines += ["### Targets", "", *_rows(targets), ""]
    for report in reports:
        facts = report["machine"]
        lines += [f"### {report['name']}", "", report["about"]]
        lines += [f"Measured {facts['date']} at commit `{facts['commit']}`, load {facts['load']} before.", ""]
        for raw in report["tables"]:
            table = Table(raw["title"], tuple(raw["columns"]), [tuple(row) for row in raw["rows"]])
            lines += [f"{table.title}:", "", *_rows(table), ""]
        for name, title in PLOTS.get(report["name"], ()):
            if (plots / f"{name}.svg").exists():
                lines += [f"![{title}](performance/{name}.svg)", ""]
    return "\n".join(lines)


def _machine(facts: dict[str, Any]) -> list[str]:
    return [
        f"{facts['cores']} cores of {facts['cpu']}, Linux {facts['kernel']}, Python {facts['python']}; "
        + ", ".join(facts["versions"])
        + ".",
        "Servers on loopback with default durability, everything on the same machine, nodes in processes of their own.",
    ]


def _rows(table: Table) -> list[str]:
    """The rows without the title."""
    return table.text().split("\n\n", 1)[1].rstrip("\n").split("\n")
