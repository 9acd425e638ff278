"""The results of a scenario: tables for the terminal and the documentation, targets, and the raw figures as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import load_now

__all__ = ["Report", "Table", "Target", "machine", "write"]


@dataclass(slots=True)
class Table:
    """Rows under a title."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        self.rows.append(cells)

    def text(self) -> str:
        """As people and Markdown read it."""
        cells = [tuple(map(_shown, row)) for row in (self.columns, *self.rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.columns))]
        lines = [
            f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in cells
        ]
        lines.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
        return "\n".join((f"### {self.title}", "", *lines, ""))


@dataclass(slots=True)
class Target:
    """A figure that is to be reached, and what was."""

    figure: str
    goal: str
    reached: str
    ok: bool


@dataclass(slots=True)
class Report:
    """The result of one scenario."""

    name: str
    about: str
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def table(self, title: str, *columns: str) -> Table:
        made = Table(title, columns)
        self.tables.append(made)
        return made

    def target(self, figure: str, goal: str, reached: str, ok: bool) -> None:
        self.targets.append(Target(figure, goal, reached, ok))

    def text(self) -> str:
        parts = [f"## {self.name}", "", self.about, "", *(table.text() for table in self.tables)]
        if self.targets:
            targets = Table("Targets", ("figure", "target", "reached", ""))
            for one in self.targets:
                targets.add(one.figure, one.goal, one.reached, "yes" if one.ok else "no")
            parts.append(targets.text())
        return "\n".join(parts)


def machine(versions: Iterable[str]) -> dict[str, Any]:
    """Return the facts of the machine that the figures were taken on."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": list(versions),
        "commit": commit.stdout.strip(),
        "load": load_now(),
    }


def write(reports: Sequence[Report], facts: dict[str, Any], folder: Path) -> None:
    """The raw figures, a file for each scenario, and all tables as one Markdown text."""
    folder.mkdir(parents=True, exist_ok=True)
    for report in reports:
        content = {"machine": facts, **asdict(report)}
        (folder / f"{report.name}.json").write_text(json.dumps(content, indent=1) + "\n")
    head = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    (folder / "tables.md").write_text("\n".join((head, "", *(report.text() for report in reports))))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
