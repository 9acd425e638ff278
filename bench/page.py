"""Writes what was measured into the pages of the docs: targets, tables and plots, with machine and date.

What the service costs stands in docs/reference/dashboard.md, everything else in docs/explanation/performance.md. A page
of which nothing was measured is left alone. On one that is written, every scenario that has left its JSON is shown,
each with the commit and date of its own run: one may be measured again without the others. What the page shows of a
scenario that has left none, in a fresh clone for instance, stays.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.processes import ROOT
from bench.report import Table

__all__ = ["BEGIN", "END", "PAGE", "PAGES", "Shown", "figures_of", "write_pages"]

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


@dataclass(slots=True)
class Shown:
    """What the page shows already."""

    machine: list[str] = field(default_factory=list)
    targets: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    """By scenario."""
    sections: dict[str, list[str]] = field(default_factory=dict)
    """The lines of each scenario, its heading included."""

    @classmethod
    def on(cls, text: str) -> Shown:
        """Read the text between the marks."""
        head, *parts = re.split(r"^### ", text, flags=re.MULTILINE)
        shown = cls(machine=[line for line in head.splitlines() if line])
        for part in parts:
            name, *lines = part.rstrip().splitlines()
            if name == "Targets":
                for line in lines[3:]:  # an empty line, the head, a rule
                    cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
                    shown.targets.setdefault(cells[-1].strip("`"), []).append(cells)
            else:
                shown.sections[name] = [f"### {name}", *lines, ""]
        return shown


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
    shown, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page.name} has no place for the figures: {BEGIN} ... {END}")
    found = {name: json.loads(path.read_text()) for name in names if (path := folder / f"{name}.json").exists()}
    plots = page.parent / "performance"
    for name in found:
        for plot, _ in PLOTS.get(name, ()):
            if (folder / f"{plot}.svg").exists():
                plots.mkdir(exist_ok=True)
                shutil.copyfile(folder / f"{plot}.svg", plots / f"{plot}.svg")
    text = figures_of(found, plots, names=names, shown=Shown.on(shown))
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")


def figures_of(found: Mapping[str, dict[str, Any]], plots: Path, *, names: Iterable[str], shown: Shown) -> str:
    """Return the text between the marks: of each scenario what was found, else what was shown."""
    there = [name for name in names if name in found or name in shown.sections]
    if not there:
        return "Nothing has been measured yet.\n"
    # One machine for all of them, if it is the same; a section that was measured on another one says so.
    stays = any(name not in found for name in there)
    head = shown.machine if stays else _machine(list(found.values())[-1]["machine"])
    lines = [*head, ""]
    targets = Table("", ("figure", "target", "reached", "", "scenario"))
    for name in there:
        if name in found:
            for one in found[name]["targets"]:
                mark = "yes" if one["ok"] else "**no**"
                targets.add(one["figure"], one["goal"], one["reached"], mark, f"`{name}`")
        else:
            targets.rows += shown.targets.get(name, [])
    if targets.rows:
        lines += ["### Targets", "", *_rows(targets), ""]
    for name in there:
        lines += _section(found[name], plots, head) if name in found else shown.sections[name]
    return "\n".join(lines)


def _section(report: Mapping[str, Any], plots: Path, head: list[str]) -> list[str]:
    facts = report["machine"]
    lines = [f"### {report['name']}", "", report["about"]]
    if head and not head[0].startswith(_computer(facts)):
        lines.append(f"On {_computer(facts)}.")
    lines += [f"Measured {facts['date']} at commit `{facts['commit']}`, load {facts['load']} before.", ""]
    for raw in report["tables"]:
        table = Table(raw["title"], tuple(raw["columns"]), [tuple(row) for row in raw["rows"]])
        lines += [f"{table.title}:", "", *_rows(table), ""]
    for name, title in PLOTS.get(report["name"], ()):
        if (plots / f"{name}.svg").exists():
            lines += [f"![{title}](performance/{name}.svg)", ""]
    return lines


def _machine(facts: dict[str, Any]) -> list[str]:
    return [
        f"{_computer(facts)}; {', '.join(facts['versions'])}.",
        "Servers on loopback with default durability, everything on the same machine, nodes in processes of their own.",
    ]


def _computer(facts: Mapping[str, Any]) -> str:
    return f"{facts['cores']} cores of {facts['cpu']}, Linux {facts['kernel']}, Python {facts['python']}"


def _rows(table: Table) -> list[str]:
    """The rows without the title."""
    return table.text().split("\n\n", 1)[1].rstrip("\n").split("\n")
