"""The name that was probably meant is found in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

import solocron
from solocron import InvalidError, Scheduler
from solocron.near import did_you_mean, nearest


def test_the_nearest_name_is_asked_for_and_a_stranger_gets_the_other_hint() -> None:
    assert did_you_mean("fialed", ["lost", "failed"]) == "did you mean 'failed'?"
    assert did_you_mean("zzz", ["lost", "failed"], "choose from lost, failed.") == "choose from lost, failed."
    assert did_you_mean("zzz", []) == ""
    assert nearest("job-1", {"job-2", "job-11", "other"}, n=2) == ["job-11", "job-2"]


def test_events_and_statuses_are_asked_for_too() -> None:
    scheduler = Scheduler("memory://near")
    scheduler.open()
    with pytest.raises(InvalidError, match=r"there is no event 'alrm'; did you mean 'alarm'\?"):
        scheduler.on("alrm")
    with pytest.raises(InvalidError, match=r"status 'fialed' is not known; did you mean 'failed'\?"):
        scheduler.runs(status="fialed")


def test_there_is_one_place() -> None:
    root = Path(solocron.__file__).parent
    assert [path.name for path in root.rglob("*.py") if "difflib" in path.read_text(encoding="utf-8")] == ["near.py"]
