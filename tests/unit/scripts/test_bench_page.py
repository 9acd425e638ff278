"""`make bench` puts its tables, targets and plots between the marks of the page, and touches nothing else of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bench import page
from bench.report import Report

MACHINE = {
    "date": "2026-11-16 02:00 UTC", "cpu": "a processor", "cores": 2, "kernel": "6.1", "python": "3.11.7",
    "versions": ["PostgreSQL 15"], "commit": "abc1234", "load": 0.1,
}  # fmt: skip


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    target = tmp_path / "performance.md"
    target.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    monkeypatch.setattr(page, "PAGE", target)
    return target


def measured(folder: Path, name: str, *, ok: bool) -> None:
    report = Report(name, f"What {name} does.")
    report.table("By size", "size", "runs/s").add(1000, 2345.6)
    report.target(f"{name} is fast", ">= 2,000/s", "2,346/s", ok)
    (folder / f"{name}.json").write_text(json.dumps({"machine": MACHINE, **asdict(report)}))


def test_every_scenario_that_was_measured_is_shown(written: Path, tmp_path: Path) -> None:
    measured(tmp_path, "nodes", ok=True)
    measured(tmp_path, "burst", ok=False)
    (tmp_path / "nodes.svg").write_text("<svg/>")
    page.write_pages(tmp_path, ("burst", "nodes", "idle"), ["nodes"])
    text = written.read_text()
    assert text.startswith(f"before\n{page.BEGIN}\n")
    assert text.endswith(f"{page.END}\nafter\n")
    assert "old" not in text
    assert text.index("### burst") < text.index("### nodes")
    assert "| burst is fast | >= 2,000/s | 2,346/s | **no** | `burst`  |" in text
    assert "| 1,000 | 2,346  |" in text
    assert "`abc1234`" in text
    assert "![Runs per second by nodes](performance/nodes.svg)" in text
    assert (tmp_path / "performance" / "nodes.svg").exists()
    assert "burst-rate.svg" not in text


def test_what_was_not_measured_again_stays_as_it_was(written: Path, tmp_path: Path) -> None:
    """As in a fresh clone, where the folder of figures is empty."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    names = ("burst", "nodes", "swap")
    measured(first, "burst", ok=True)
    measured(first, "nodes", ok=False)
    page.write_pages(first, names, names)
    before = written.read_text()
    page.write_pages(second, names, names)
    assert written.read_text() == before
    measured(second, "swap", ok=True)
    page.write_pages(second, names, names)
    text = written.read_text()
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        *("### Targets", "### burst", "### nodes", "### swap"),
    ]
    assert [text.count(f"| {name} is fast ") for name in names] == [1, 1, 1]
    assert "| **no** | `nodes`" in text
    assert text.count("2 cores of a processor") == 1
    measured(second, "nodes", ok=True)
    page.write_pages(second, names, names)
    text = written.read_text()
    assert "**no**" not in text
    assert [text.count(f"What {name} does.") for name in names] == [1, 1, 1]


def test_figures_of_another_machine_say_so(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    measured(first, "burst", ok=True)
    page.write_pages(first, ("burst", "swap"), ("burst", "swap"))
    monkeypatch.setitem(MACHINE, "cpu", "another")
    measured(second, "swap", ok=True)
    page.write_pages(second, ("burst", "swap"), ("burst", "swap"))
    text = written.read_text()
    assert text.index("2 cores of a processor") < text.index("### burst") < text.index("On 2 cores of another")


def test_the_page_of_the_docs_is_read_back_as_it_is_written() -> None:
    shown = page.Shown.on(page.PAGE.read_text(encoding="utf-8").partition(page.BEGIN)[2].partition(page.END)[0])
    assert {"burst", "nodes", "lateness", "idle", "takeover"} <= set(shown.sections)
    assert set(shown.targets) <= set(shown.sections)
    assert all(len(row) == 5 for rows in shown.targets.values() for row in rows)


def test_a_page_without_a_place_for_figures_is_left_alone(written: Path, tmp_path: Path) -> None:
    written.write_text("nothing here\n")
    with pytest.raises(SystemExit, match="no place"):
        page.write_pages(tmp_path, ("burst",), ["burst"])
    assert written.read_text() == "nothing here\n"


def test_a_scenario_with_a_page_of_its_own_is_written_there_and_nowhere_else(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one scenario, measured alone in an empty folder, would take the figures of all others from their page."""
    own = tmp_path / "dashboard.md"
    own.write_text(f"{page.BEGIN}\n{page.END}\n")
    monkeypatch.setattr(page, "PAGES", {"service": own})
    measured(tmp_path, "service", ok=True)
    before = written.read_text()
    page.write_pages(tmp_path, ("burst", "service"), ["service"])
    assert written.read_text() == before
    assert "### service" in own.read_text()
    kept = own.read_text()
    measured(tmp_path, "burst", ok=True)
    page.write_pages(tmp_path, ("burst", "service"), ["burst"])
    assert "### service" not in written.read_text()
    assert own.read_text() == kept


@pytest.mark.parametrize("of_docs", [page.PAGE, *page.PAGES.values()], ids=lambda path: path.name)
def test_each_page_of_the_docs_has_its_place(of_docs: Path) -> None:
    text = of_docs.read_text(encoding="utf-8")
    assert text.index(page.BEGIN) < text.index(page.END)
