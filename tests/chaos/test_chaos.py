"""The short form of `make chaos`: on every store, the faults that find most, for some seconds."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import cast

import pytest

from proof.chaos import report
from proof.chaos.arena import Arena
from proof.chaos.command import ONLY
from proof.chaos.fault import Fault, Scene
from proof.chaos.figures import Figures
from proof.chaos.forgetful import ACKNOWLEDGED, forgetful
from proof.chaos.network_faults import CUT, LOST_REPLY
from proof.chaos.node_faults import FREEZE, KILL
from proof.chaos.outage import OUTAGE, outage
from proof.chaos.places import STORES, Place
from proof.chaos.scenarios import beside, storm
from proof.chaos.store_faults import CRASH, RESTART, RIVALS
from proof.chaos.storm import Storm
from proof.chaos.upgrade import UPGRADE, upgrade
from tests.servers import INSTALLED, OPTIONAL
from tests.servers.fixtures import require

FAMILIES = ("postgres", "redis")
"""The others with --long, and all for minutes in `make chaos`. Fleets on one SQLite file have tests of their own."""
KEY_STORES = ("etcd", "nats", "zookeeper", "dynamodb", *OPTIONAL)
"""Their servers count no calls."""
SHORT = (CRASH, FREEZE, CUT, KILL, LOST_REPLY, RIVALS, RESTART)


LONG = [pytest.param(name, marks=pytest.mark.long) for name in STORES if name not in FAMILIES]


def _require(store: str) -> None:
    """Skip without the server of a store; under CI fail, unless it is one that is installed only when it is named."""
    if store in OPTIONAL and OPTIONAL[store].binary() is None:
        pytest.skip(f"{store} is not installed: {OPTIONAL[store].hint}")
    if store in INSTALLED:
        require(INSTALLED[store])


@pytest.mark.parametrize("store", [*FAMILIES, *LONG])
def test_every_store_survives_a_short_storm(store: str, tmp_path: Path) -> None:
    """Nothing twice, nothing lost, nothing stale accepted, everything on record, and each fault was seen to strike."""
    _require(store)
    told: list[str] = []
    with Place(store) as place:
        figures = storm(
            place, tmp_path, seconds=5, seed=7, tell=told.append, faults=SHORT, kills=1, lease=2.0, timed=False
        )
    assert figures.clean, "\n".join([*figures.faults, *told])
    assert figures.slots >= 20
    assert figures.kills >= 2
    assert figures.takeovers
    if store in INSTALLED:
        assert figures.restarts >= 2 - (store == "azurite")
        assert figures.calls_per_run or store in KEY_STORES


@pytest.mark.invariant("I23: slots start soon after the store is back")
@pytest.mark.parametrize(
    "store", [pytest.param(name, marks=() if name == "postgres" else pytest.mark.long) for name in ONLY["outage"]]
)
def test_after_half_a_lease_without_the_store_nobody_sleeps_on(store: str, tmp_path: Path) -> None:
    """At the default lease; it was up to half a minute on every store."""
    _require(store)
    with Place(store) as place:
        figures = outage(place, tmp_path, tell=lambda text: None, away=(0.45,))
    assert figures.clean, figures.faults
    assert figures.struck == {OUTAGE: 1}


@pytest.mark.long
@pytest.mark.parametrize("store", ONLY["upgrade"])
def test_the_next_release_upgrades_the_store_under_nodes_of_this_one(store: str, tmp_path: Path) -> None:
    """Both work side by side under kills: nothing twice, nothing lost, and what only the next one knows is kept."""
    _require(store)
    told: list[str] = []
    with Place(store) as place:
        figures = upgrade(place, tmp_path, seconds=4, seed=7, tell=told.append, lease=2.0)
    assert figures.clean, "\n".join([*figures.faults, *told])
    assert figures.slots >= 20
    assert figures.struck[UPGRADE] == 1


@pytest.mark.long
@pytest.mark.parametrize("store", ["redis", "valkey"])
def test_without_an_append_only_file_acknowledged_writes_are_gone_and_doctor_has_said_so(
    store: str, tmp_path: Path
) -> None:
    """Fifty of fifty, as on every server that keeps nothing on disk; with the file none."""
    _require(store)
    figures = forgetful(store, tmp_path, tell=lambda text: None)
    assert figures.clean, "\n".join(figures.faults)
    assert figures.losses == ACKNOWLEDGED
    assert len(figures.notes) == 2


def test_a_node_that_was_frozen_runs_nothing_that_the_healthy_one_has_run(tmp_path: Path) -> None:
    """A peer on PostgreSQL ran three of four again."""
    with Place("sqlite") as place:
        figures = beside(place, tmp_path, frozen_for=4.0, tell=lambda text: None)
    assert figures.clean, "\n".join(figures.faults)
    assert figures.freezes >= 1


def test_a_fault_that_never_strikes_fails_the_run() -> None:
    asked: list[int] = []

    def strike(scene: Scene) -> int:
        asked.append(scene.turn)
        return 0

    silent = Fault("F99", "nothing happens", strike)
    storm = Storm(cast(Arena, None), seed=1, tell=lambda text: None, extra=0.2)
    storm.rage(0.05, first=[silent], again=[silent])
    figures = Figures(store="sqlite", scenario="storm")
    figures.note_strikes({silent.number: storm.struck[silent.number]})
    assert figures.faults == ["F99 never struck"]
    assert len(asked) > 1, "it was tried again"


def test_a_fault_that_fails_when_the_time_is_up_is_tried_again() -> None:
    """On a slow machine the storm ended while a cut was still waiting for a request to cut: it never struck."""
    over = threading.Event()
    storm = Storm(cast(Arena, None), seed=1, tell=lambda text: None)

    def strike(scene: Scene) -> int:
        if scene.turn == 0:
            over.wait(0.2)  # longer than the storm
        return scene.turn

    slow = Fault("F99", "strikes the second time", strike)
    storm.rage(0.05, first=[slow], again=[Fault("F98", "strikes", lambda scene: 1)])
    assert storm.struck["F99"] == 1


def test_what_a_fault_raises_ends_the_storm() -> None:
    def strike(scene: Scene) -> int:
        raise RuntimeError("the harness is broken")

    storm = Storm(cast(Arena, None), seed=1, tell=lambda text: None)
    with pytest.raises(RuntimeError, match="harness is broken"):
        storm.rage(0.05, first=[Fault("F99", "breaks", strike)], again=[])


def test_many_takeovers_are_read_back_from_a_page_as_they_are_shown() -> None:
    figures = Figures(store="redis", scenario="storm", takeovers=[3 + 0.01 * number for number in range(150)])
    told = json.loads(json.dumps({**figures.to_json(), "takeovers": figures.summary()}))
    back = Figures.from_json(told)
    assert back.row() == figures.row()
    assert back.summary() == figures.summary()


def test_the_page_of_the_docs_keeps_every_figure_that_it_shows() -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    shown = report.shown()
    for figures in shown:
        if figures.scenario in ("storm", "crowd"):
            assert "| " + " | ".join(map(str.strip, figures.row())) + " |" in re.sub(" +", " ", text)
    made = re.findall(r"^\| (\S+) +\| (\S+) +\| 20", text, re.MULTILINE)
    assert {(figures.scenario, figures.store) for figures in shown} == set(made)


def test_the_report_replaces_the_figures_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "chaos.md"
    page.write_text(f"# Chaos\n\n{report.BEGIN}\nstale figures\n{report.END}\n\nAfter.\n")
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr(report, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(report, "HISTORY", tmp_path / "kept" / "history.jsonl")
    figures = Figures(store="redis", scenario="storm", slots=1234, takeovers=[3.0, 3.2], struck={"F1": 7})
    report.keep(figures)
    report.keep(Figures(store="sqlite", scenario="crowd", faults=["twice: job 1"]))
    assert [(one.store, one.scenario) for one in report.kept()] == [("sqlite", "crowd"), ("redis", "storm")]
    report.write(report.kept())
    text = page.read_text()
    assert text.startswith(f"# Chaos\n\n{report.BEGIN}\n")
    assert text.endswith(f"{report.END}\n\nAfter.\n")
    assert "stale figures" not in text
    assert "1,234" in text
    assert "3.00 / 3.20 / 3.20" in text
    assert "Not as promised: sqlite, crowd: twice: job 1" in text
    assert "whose scenario was repeated" not in text
    report.keep(Figures(store="sqlite", scenario="crowd"))
    report.write(report.kept())
    assert "- sqlite, crowd" in page.read_text(), "a later success does not hide an earlier failure"
    # A fresh clone has the page alone, and plays one scenario.
    monkeypatch.setattr(report, "KEPT", tmp_path / "fresh")
    monkeypatch.setattr(report, "HISTORY", tmp_path / "fresh" / "history.jsonl")
    report.keep(Figures(store="etcd", scenario="crowd", slots=12_345, takeovers=[9.5, 8.25]))
    report.write(report.kept())
    again = page.read_text()
    assert [(one.store, one.scenario) for one in report.shown()] == [
        *(("sqlite", "crowd"), ("redis", "storm"), ("etcd", "crowd")),
    ]
    assert "12,345" in again
    assert "3.00 / 3.20 / 3.20" in again
    assert report.shown()[2].takeovers == [9.5, 8.25]
    raw = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert [one["slots"] for one in raw] == [0, 1234]
