"""A body that crashes its process costs its own run and nothing else; with retries another attempt goes on."""

from __future__ import annotations

import os
from pathlib import Path

from solocron import Run, Scheduler, every


@every("1d", run_in="process", retries=1)
def fragile(run: Run) -> str:
    """The first attempt takes its whole process down."""
    if run.attempt == 1:
        os.abort()
    return f"attempt {run.attempt}"


def test_a_crash_costs_one_attempt_and_not_the_node(tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'store.db'}", enabled=True)
    scheduler.discover(fragile)
    with scheduler:
        view = scheduler.wait(scheduler.trigger("fragile"), "60s")
        assert (view.status, view.result) == ("succeeded", "attempt 2")
        first, second = scheduler.open().attempts(view.run)
        assert (first.status, first.error) == ("failed", "its process was killed by SIGABRT before it had answered")
        assert first.node == second.node, "the node is still there"
