"""The long gate: it knows what it proved, and says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest

from proof import gate
from proof.simulator.campaign import INVARIANTS, Summary
from proof.simulator.options import Options, draw
from proof.simulator.world import Report

PAGE = f"before\n{gate.BEGIN}\nold figures\n{gate.END}\nafter"

ENTRIES = {
    "proof/__main__.py",
    "proof/simulator/campaign.py",
    "proof/simulator/command.py",
    *(
        f"src/solocron/cli/{name}.py"
        for name in ("__init__", "arguments", "entry", "exits", "host", "output", "parser", "tables")
    ),
}
"""The command around the world."""


def told(lease: float, **more: object) -> dict[str, object]:
    options = Options(seed=1, lease=lease, hours=1.0)
    return Report(options=options, hours=20.0, slots=300, checked=Counter(INVARIANTS)).to_json() | more


def summary(*worlds: dict[str, object]) -> Summary:
    made = Summary()
    for world in worlds:
        made.add(world)
    return made


def test_every_place_that_names_the_code_exists() -> None:
    assert [place for place in (*gate.PROVED, *gate.APART, *gate.CHAIN) if not (gate.ROOT / place).exists()] == []


def test_checks_of_alarms_add_up_where_no_range_alone_has_enough_of_them() -> None:
    """A range of ten worlds dropped them, so that a thousand worlds with alarms had checked none."""
    checked = Counter({"alarms told": 3, "alarms compared": 2})
    world = Report(options=Options(seed=1, lease=3.0, alarms=60.0), checked=checked).to_json()
    whole = Summary()
    for _ in range(8):
        whole.merge(summary(world).to_json())
    assert (whole.checked["alarms told"], whole.checked["alarms compared"]) == (24, 16)
    assert not set(whole.unchecked) & {"alarms told", "alarms compared"}


def test_the_parts_hold_every_world_once() -> None:
    places = [place for part in gate.PARTS for place in range(part.skipped, part.skipped + part.seeds)]
    assert sorted(places) == list(range(gate.RANGE))


def _files(found: str) -> set[str]:
    return {str(Path(line).resolve().relative_to(gate.ROOT)) for line in found.splitlines()}


def _names(part: gate.Part) -> set[str]:
    return {str(file.relative_to(gate.ROOT)) for file in gate.proved(part)}


def test_everything_that_a_simulated_world_imports_is_in_the_fingerprint() -> None:
    """Otherwise results of old code would count for new code."""
    look = (
        "import sys\n"
        "from proof.__main__ import main\n"
        "assert main(['simulate', '--seed', '20', '--set', 'lease=3', '--set', 'hours=0.005', '--json']) == 0\n"
        "files = [m.__file__ for n, m in sys.modules.items() if n.startswith(('solocron.', 'proof.'))]\n"
        "print(*(file for file in files if file), sep='\\n', file=sys.stderr)\n"
    )
    seen = subprocess.run([sys.executable, "-c", look], cwd=gate.ROOT, capture_output=True, text=True, timeout=60)
    most, chains = gate.PARTS
    assert "src/solocron/testing/simulation/kernel.py" in _files(seen.stderr)
    assert _files(seen.stderr) - _names(chains) == ENTRIES
    assert all(name.startswith(gate.CHAIN) for name in _names(chains) - _names(most))


@pytest.mark.parametrize("chain", [False, True])
def test_only_worlds_of_a_chain_run_its_code(chain: bool) -> None:
    """Results of the other worlds stay valid when that code changes."""
    look = (
        "import sys\n"
        "from proof.__main__ import main\n"
        "import proof.simulator.command, solocron.testing.simulation.fleet\n"
        "called = set()\n"
        "sys.setprofile(lambda frame, *_: called.add(frame.f_code.co_filename))\n"
        "small = ['--set', 'lease=3', '--set', 'hours=0.002', '--set', 'jobs=2', '--set', 'chain=' + sys.argv[1]]\n"
        "assert main(['simulate', '--seed', '20', '--nodes', '2', *small, '--json']) == 0\n"
        "sys.setprofile(None)\n"
        "print(*(file for file in called if file.startswith(sys.argv[2])), sep='\\n', file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", look, str(int(chain)), str(gate.ROOT)]
    seen = subprocess.run(command, cwd=gate.ROOT, capture_output=True, text=True, timeout=60)
    ran = {name for name in _files(seen.stderr) if not name.startswith(".")}
    assert "src/solocron/engine/claimer.py" in ran
    assert any(name.startswith(gate.CHAIN) for name in ran) == chain


def test_the_worlds_of_a_chain_are_those_of_its_part() -> None:
    most, chains = gate.PARTS
    drawn = {seed % gate.RANGE for seed in range(200) if draw(seed).chain}
    assert drawn == set(range(chains.skipped, chains.skipped + chains.seeds))
    assert not drawn & set(range(most.skipped, most.skipped + most.seeds))


def test_what_the_gate_asks_for_and_has_not_got_is_named() -> None:
    missing = gate._missing(summary(told(15.0), told(1800.0, violation="I1: twice", tail=[])))
    assert missing[:3] == ["2 seeds of 1000", "600 slots of 1000000", "40 simulated hours of 10000"]
    assert "seed 1: I1: twice" in missing


def parts(most: Summary, chains: Summary | None = None) -> dict[str, Summary]:
    return {"most": most, "chains": chains or Summary()}


def test_the_report_shows_hours_and_slots_by_lease_and_keeps_the_rest_of_the_page() -> None:
    twice = Summary()
    for _ in range(2):  # as ranges of seeds are added up
        twice.merge(summary(told(15.0), told(1800.0)).to_json())
    found = parts(twice, summary(told(15.0), told(15.0)))
    page = gate._written(PAGE, found, ["too little"], Namespace(nodes=5, hours=0.25))
    assert page.startswith("before\n")
    assert page.endswith("\nafter")
    assert "old figures" not in page
    assert "The gate is not met yet: too little." in page
    assert "| 15 s | 4 | 80 | 1,200 |" in page
    assert "| 1800 s | 2 | 40 | 600 |" in page


def test_another_clone_goes_on_where_the_page_ends(tmp_path: Path) -> None:
    args = Namespace(nodes=5, hours=0.25)
    most, _ = gate.PARTS
    half = Summary()
    half.merge(summary(*(told(15.0) for _ in range(most.seeds))).to_json())
    page = gate._written(PAGE, parts(half, summary(told(15.0), told(15.0))), ["too little"], args)
    published = gate._published(page, args)
    assert published["most"].to_json() == half.to_json()
    assert published["chains"].seeds == 2

    gate._file(tmp_path, gate.RANGE).write_text(json.dumps(half.to_json()))
    gate._file(tmp_path, 3 * gate.RANGE).write_text(json.dumps(half.to_json()))  # after a gap
    gate._add_finished(most, tmp_path, published["most"])
    assert published["most"].seeds == 2 * most.seeds
    assert gate._sum(published).seeds == 2 * most.seeds + 2


@pytest.mark.parametrize("change", ["code", "nodes", "hours", "failed", "nothing"])
def test_figures_of_other_code_or_other_worlds_do_not_count(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args = Namespace(nodes=5, hours=0.25)
    failed = {"violation": "I1: twice", "tail": []} if change == "failed" else {}
    half = summary(*(told(15.0, **failed) for _ in range(gate.PARTS[0].seeds)))
    page = PAGE if change == "nothing" else gate._written(PAGE, parts(half), [], args)
    if change == "code":
        monkeypatch.setattr(gate, "_fingerprint", lambda part: "another")
    elif change in ("nodes", "hours"):
        setattr(args, change, 1)
    assert gate._published(page, args)["most"].seeds == 0


def test_a_change_of_the_chain_leaves_the_other_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    args = Namespace(nodes=5, hours=0.25)
    most = gate.PARTS[0]
    page = gate._written(PAGE, parts(summary(*(told(15.0) for _ in range(most.seeds))), summary(told(15.0))), [], args)
    known = gate._fingerprint(most)
    monkeypatch.setattr(gate, "_fingerprint", lambda part: known if part is most else "another")
    assert {name: one.seeds for name, one in gate._published(page, args).items()} == {"most": most.seeds, "chains": 0}
