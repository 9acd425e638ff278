"""What it costs an application to have Solocron: a short import, and no handler in its log."""

from __future__ import annotations

import subprocess
import sys

MOST_MS = 40.0


def test_importing_it_takes_less_than_40_ms() -> None:
    """Of the processor's time, at the best of five: other programs on the machine do not count."""
    look = "import time; begun = time.process_time(); import solocron; print((time.process_time() - begun) * 1000)"
    taken = [
        float(
            subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60).stdout
        )
        for _ in range(5)
    ]
    assert min(taken) < MOST_MS, taken


def test_an_application_that_configured_no_log_sees_warnings_and_nothing_else() -> None:
    """Python itself writes warnings to stderr then; we add no handler that an application would have to remove."""
    look = (
        "import logging; from solocron import Scheduler\n"
        "s = Scheduler('memory://', enabled=True); s.every('1d', name='job', retries=0)(lambda: 1 / 0)\n"
        "s.discover('json')\n"
        "try: s.run_now('job')\n"
        "except ZeroDivisionError: pass\n"
        "assert not logging.getLogger('solocron').handlers and not logging.root.handlers\n"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)
    lines = [line for line in done.stderr.splitlines() if not line.startswith((" ", "Traceback"))]
    assert lines[0] == "no job is declared in module json: nothing was registered from it"
    assert lines[1].startswith("run failed: ZeroDivisionError: division by zero [job=job")
    assert "a node runs" not in done.stderr
