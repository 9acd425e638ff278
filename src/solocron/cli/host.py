"""The command line inside another one: `flask solocron ...`, `manage.py solocron ...`.

There TARGET is the application's scheduler, and the store is the scheduler's, unless a flag names another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["HostApplication", "hosted", "hosted_main", "in_its_words", "program"]


@dataclass(frozen=True, slots=True)
class HostApplication:
    """An application whose command line this is a part of."""

    scheduler: Scheduler
    program: str
    """The words that call it, such as `flask solocron`."""


_host: HostApplication | None = None


def hosted() -> HostApplication | None:
    """Return the application around this command line, if there is one."""
    return _host


def program() -> str:
    """Return the words that call this command line."""
    return "solocron" if _host is None else _host.program


def in_its_words(text: str) -> str:
    """Return a sentence of the library's whose commands are those of this command line; there is no TARGET to name."""
    if _host is None:
        return text
    from solocron.cli.parser import COMMANDS

    named = re.sub(rf"\bsolocron (?=({'|'.join(COMMANDS)})\b)", f"{_host.program} ", text)
    return named.replace(f"{_host.program} run TARGET", f"{_host.program} run")


def hosted_main(scheduler: Scheduler, argv: Sequence[str], *, program: str) -> int:
    """Run one command for the scheduler of an application, and return its exit code."""
    from solocron.cli.entry import main

    global _host
    _host = HostApplication(scheduler, program)
    try:
        return main(argv)
    finally:
        _host = None
