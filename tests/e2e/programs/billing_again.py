"""Start the billing example again and again, each time in a fork of a process that has imported it.

    python -m tests.e2e.programs.billing_again FOLDER

Each line on stdin is a failpoint, or empty; the answer is a line of JSON: how that start ended, and what it printed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from examples.billing.__main__ import main
from solocron import runtime


def start(folder: Path, failpoint: str) -> tuple[int, str]:
    """Return how a start ended, as `subprocess` tells it, and what it printed."""
    printed = folder / "printed"
    pid = os.fork()
    if pid == 0:
        runtime._FAILPOINT = runtime._failpoint(failpoint)
        with printed.open("w") as sys.stdout:
            code = main([str(folder)])
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, printed.read_text()


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(start(Path(sys.argv[1]), line.strip())) + "\n")
        sys.stdout.flush()
