"""The demo as a live table, on terminals where rich is installed."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from solocron.demo.screen import AttemptRow, Screen, sentences
from solocron.testing.fleet import Fleet, FleetVerdict, Replica

__all__ = ["LiveScreen"]

_NEWS = 6
_COLOURS = {"running": "cyan", "done": "green", "failed": "yellow", "frozen": "blue", "killed": "red"}


class LiveScreen(Screen):
    """The last attempts, the events of the replicas, and the replicas that are alive."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._news: list[str] = []

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._news.append(text)

    def show(self, fleet: Fleet) -> None:
        rows = self.rows(fleet)
        room = max(5, self._console.height - _NEWS - 7)
        news = Text("\n".join(f"* {text}" for text in self._news[-_NEWS:]), style="bold")
        self._live.update(Group(_replicas(fleet.replicas), _table(rows[-room:]), news), refresh=True)

    def tell(self, verdict: FleetVerdict, lease: float) -> None:
        table = Table(show_header=False, box=None, padding=(0, 1))
        for name, value in sentences(verdict, lease):
            table.add_row(Text(name, style="bold"), Text(value, style="green" if verdict.clean else "red"))
        self._live.stop()
        self._console.print(table)


def _replicas(replicas: list[Replica]) -> Text:
    text = Text()
    for replica in replicas:
        state = "frozen" if replica.frozen else "done" if replica.alive else "killed"
        if replica.process.returncode == 0:
            state = "stopped"
        text.append(f" {replica.node} ", style=f"reverse {_COLOURS.get(state, 'dim')}")
        text.append(" ")
    return text


def _table(rows: list[AttemptRow]) -> Table:
    table = Table(expand=False)
    for name in ("job", "slot", "ran on", "attempt", "fence", "state"):
        table.add_column(name, justify="right" if name in ("attempt", "fence") else "left")
    for row in rows:
        style = _COLOURS.get(row.state, "magenta")
        table.add_row(row.job, row.slot, row.node, str(row.attempt), str(row.fence), Text(row.state, style=style))
    return table
