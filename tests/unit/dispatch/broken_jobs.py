"""Can be imported where the flag is set, and nowhere else."""

import os

from solocron import every

if os.environ.get("BROKEN_JOBS") != "whole":
    raise RuntimeError("this module is broken here")


@every("1d", name="broken", run_in="process")
def broken() -> None:
    """Never gets as far as this."""
