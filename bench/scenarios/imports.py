"""The cost of `import solocron`: processor time above that of a bare interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.figures import percentile
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]

_PROGRAM = "import time; a = time.process_time(); {}; print((time.process_time() - a) * 1000)"
_WORDS = {
    "import solocron": "import solocron",
    "from solocron import Scheduler, cron, Run": "from solocron import Scheduler, cron, Run",
    "a Scheduler on SQLite": "from solocron import Scheduler; Scheduler('sqlite:///:never.db')",
}


def run(bench: Bench) -> Report:
    """The least of several fresh interpreters: whatever else the machine does only adds."""
    report = Report(
        "import", "Processor time in a fresh interpreter that has the bytecode, least and median of several."
    )
    # What pip installs is compiled once; an environment that forbids to write bytecode would compile it every time.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bench.folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    table = report.table("Import", "statement", "least ms", "median ms")
    for title, statement in _WORDS.items():
        program = [sys.executable, "-c", _PROGRAM.format(statement)]
        found = []
        for _ in range(6 if bench.quick else 21):
            done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
            found.append(float(done.stdout))
        del found[0]  # this one has compiled
        report.figures[title] = {"least_ms": min(found), "median_ms": percentile(found, 50)}
        table.add(title, round(min(found), 1), round(percentile(found, 50), 1))
        if title != "a Scheduler on SQLite":
            # Names are imported when first used, so the bare statement alone would say too little.
            report.target(title, "<= 40 ms CPU", f"{min(found):.1f} ms", min(found) <= 40)
    return report
