"""SQLite takes the index that fits: without statistics it would read the log of all jobs for the runs of one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from solocron.stores.sql.sqlite.store import statements
from solocron.stores.url import make_store

INDEXES = {
    "history": "runs_recorded",
    "history_of_job": "runs_job",
    "history_of_status": "runs_status",
    "end_of_history": "runs_recorded",
    "end_of_history_of_job": "runs_job",
    "end_of_history_of_status": "runs_status",
    "tally_by_time": "runs_recorded",
    "tally_of_job_by_time": "runs_job",
}


@pytest.mark.parametrize("name", INDEXES)
def test_each_question_about_the_log_uses_its_index(tmp_path: Path, name: str) -> None:
    store = make_store(f"sqlite:///{tmp_path}/jobs.db")
    store.open()
    store.close()
    given = {
        **dict.fromkeys(("namespace", "job", "status", "before_run", "node", "session"), ""),
        **dict.fromkeys(("since", "before_attempt"), 0),
        **dict.fromkeys(("until", "before_at"), 2**62),
        **dict.fromkeys(("limit", "scan", "bucket"), 10),
        **dict.fromkeys(("statuses", "origins"), "[]"),
    }
    db = sqlite3.connect(tmp_path / "jobs.db")
    plan = " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statements()[name].sql}", given))
    db.close()
    assert f"INDEX solocron_{INDEXES[name]} (namespace=?" in plan
    if "of_" in name.replace("end_of_", ""):
        assert (
            f"solocron_{INDEXES[name]} (namespace=? AND {'job' if 'job' in name else 'status'}=? AND recorded_at"
            in plan
        )
