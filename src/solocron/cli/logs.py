"""The log of a command that runs jobs or serves."""

from __future__ import annotations

import logging
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext

from solocron.cli.host import hosted
from solocron.telemetry.records import logging_to_stderr

__all__ = ["logged"]


def logged(args: Namespace) -> AbstractContextManager[None]:
    """Log to stderr while the body runs.

    An application around the command that has configured logging keeps it: a second handler would write each line
    twice. A flag asks for lines on stderr all the same.
    """
    asked = args.log_format is not None or args.log_level is not None
    if hosted() is not None and not asked and logging.getLogger("solocron").hasHandlers():
        return nullcontext()
    return logging_to_stderr(args.log_format or "text", args.log_level or "info")
