"""Families of metrics as plain values, and their text in the exposition format of Prometheus.

The text is written here, so that `solocron metrics` and the HTTP service need no package for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["TEXT", "Family", "exposition"]

TEXT = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all its samples; a counter's name is without `_total`."""

    name: str
    help: str
    labels: tuple[str, ...]
    kind: Literal["counter", "gauge"] = "gauge"
    samples: dict[tuple[str, ...], float] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The name of its samples."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    def add(self, value: float, *labels: str) -> None:
        """Add to the sample of these labels, which begins with zero."""
        assert len(labels) == len(self.labels)
        self.samples[labels] = self.samples.get(labels, 0.0) + value


def exposition(families: Iterable[Family]) -> str:
    """Return the text that a Prometheus server reads."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.shown} {_escaped(family.help, quotes=False)}")
        lines.append(f"# TYPE {family.shown} {family.kind}")
        for labels, value in family.samples.items():
            pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in zip(family.labels, labels, strict=True))
            lines.append(f"{family.shown}{{{pairs}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
