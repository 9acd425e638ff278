"""Line plots as SVG, with logarithmic axes and nothing else: how cost grows, for the documentation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.report import Report

__all__ = ["line_plot", "plots"]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 640, 360, 70, 50, 40, 150
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")

Points = Sequence[tuple[float, float]]


def plots(reports: Sequence[Report], folder: Path) -> None:
    """Draw what these reports have."""
    for report in reports:
        if report.name == "burst":
            rates: dict[str, list[tuple[float, float]]] = {}
            late: dict[str, list[tuple[float, float]]] = {}
            for store, rows in report.figures.items():
                for row in rows:
                    name = f"{store}, {row['nodes']} node{'s' if row['nodes'] > 1 else ''}"
                    rates.setdefault(name, []).append((row["due"], row["runs_per_s"]))
                    late.setdefault(name, []).append((row["due"], row["lateness_p99_ms"]))
            _write(folder / "burst-rate.svg", line_plot("Runs per second", "due at once", "runs/s", rates))
            _write(folder / "burst-lateness.svg", line_plot("Lateness, p99", "due at once", "ms", late))
        if report.name == "nodes":
            lines = {
                store: [(row["nodes"], row["runs_per_s"]) for row in rows] for store, rows in report.figures.items()
            }
            _write(folder / "nodes.svg", line_plot("Runs per second by nodes", "nodes", "runs/s", lines))
        if report.name == "scale":
            rows = list(report.figures.values())
            cost = {"claim, us per run": [(row["schedules"], row["claim_us_per_run"]) for row in rows]}
            cost["lateness p99, ms"] = [(row["schedules"], row["p99_ms"]) for row in rows]
            cost["node memory, MB"] = [(row["schedules"], row["node_mb"]) for row in rows]
            _write(folder / "scale.svg", line_plot("By stored schedules", "stored schedules", "", cost))


def line_plot(title: str, x_label: str, y_label: str, lines: Mapping[str, Points]) -> str:
    """One plot; both axes are logarithmic."""
    every = [point for points in lines.values() for point in points if point[0] > 0 and point[1] > 0]
    if not every:
        return ""
    x_low, x_high = _decades([x for x, _ in every])
    y_low, y_high = _decades([y for _, y in every])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_low) / max(x_high - x_low, 1)
        up = (math.log10(y) - y_low) / max(y_high - y_low, 1)
        return (
            round(_LEFT + across * (_WIDTH - _LEFT - _RIGHT), 1),
            round(_HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - _TOP), 1),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{title}</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 10}">{x_label}</text><text x="8" y="{_TOP - 6}">{y_label}</text>',
    ]
    for power in range(x_low, x_high + 1):
        x, y = at(10.0**power, 10.0**y_low)
        top = at(10.0**power, 10.0**y_high)[1]
        parts.append(f'<line x1="{x}" y1="{y}" x2="{x}" y2="{top}" stroke="#ddd"/>')
        parts.append(f'<text x="{x - 8}" y="{y + 18}">{_number(power)}</text>')
    for power in range(y_low, y_high + 1):
        x, y = at(10.0**x_low, 10.0**power)
        right = at(10.0**x_high, 10.0**power)[0]
        parts.append(f'<line x1="{x}" y1="{y}" x2="{right}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{x - 46}" y="{y + 4}">{_number(power)}</text>')
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{x},{y}" for x, y in (at(*point) for point in points if point[0] > 0 and point[1] > 0))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{_WIDTH - _RIGHT + 10}" y="{_TOP + 18 * number}" fill="{colour}">{name}</text>')
    return "\n".join((*parts, "</svg>\n"))


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, high if high > low else low + 1


def _number(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def _write(path: Path, text: str) -> None:
    if text:
        path.write_text(text)
