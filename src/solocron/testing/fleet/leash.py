"""A child that does not outlive its parent, even if it is frozen and the parent dies by kill -9 (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["PARENT", "end_with_parent"]

PARENT = "SOLOCRON_FLEET_PARENT"
"""Environment variable with the pid of the process that must outlive this one."""

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends. Does nothing if no parent is named."""
    parent = os.environ.pop(PARENT, None)
    if parent is None or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):  # the parent died before the kernel knew
        os._exit(1)
