"""A node that forks after it has started, as a web server with preloaded workers does; the child starts one of its own.

    python -m proof.chaos.programs.preload TARGET --node N --events FILE --lease L

Both drain at SIGTERM, which the whole process group gets; the exit code is 0 when both have drained well.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

from solocron import Scheduler
from solocron.testing.fleet.__main__ import note_events
from solocron.testing.fleet.leash import PARENT, end_with_parent

warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is just what this is about


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--node", required=True)
    parser.add_argument("--lease", required=True)
    parser.add_argument("--events", type=Path, required=True)
    options = parser.parse_args()
    # Two nodes in two processes: the one that was forked gets a name of its own from the machine.
    scheduler = Scheduler(lease=options.lease, max_running=16)
    note_events(scheduler, options.events)
    scheduler.discover(options.target)
    end_with_parent()
    scheduler.start()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.environ[PARENT] = str(parent)
        end_with_parent()
    scheduler.run_forever("10s")
    if child == 0:
        return 0
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
