"""A program that has more files open than `select` can look at, and jobs in the process and in one of their own."""

from __future__ import annotations

import os

from solocron import Run, every
from solocron.testing.fleet import witness

# Only in the replicas: the fleet's client reads this module in the process of the test.
FILES = [os.open(os.devnull, os.O_RDONLY) for _ in range(int(os.environ.get("OPEN_FILES", "0")))]


@every("1d", name="inside")
def inside(run: Run) -> None:
    with witness(run):
        pass


@every("1d", name="apart", run_in="process")
def apart(run: Run) -> None:
    with witness(run):
        pass
