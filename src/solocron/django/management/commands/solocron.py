"""`manage.py solocron ...`: the whole command line, for the scheduler of this project; there is no TARGET to name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, SystemCheckError

from solocron.cli.host import hosted_main
from solocron.django.project import current
from solocron.errors import SolocronError

__all__ = ["Command"]

_OF_DJANGO = ("--settings", "--pythonpath")


class Command(BaseCommand):  # type: ignore[misc]  # Django ships no types
    """Passes its arguments on, after the checks of Solocron."""

    help = "Run a node, or look and ask: the commands of solocron for this project's scheduler."
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Run from a terminal: flags and help are Solocron's own."""
        try:
            self.check(tags=["solocron"])
        except SystemCheckError as error:
            self.stderr.write(str(error))
            sys.exit(1)
        sys.exit(_run(_without_djangos(argv[2:])))

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("argv", nargs=argparse.REMAINDER, help="a command of solocron and its arguments")

    def handle(self, *, argv: Sequence[str] = (), **options: Any) -> None:
        """Run from `call_command`."""
        code = _run(argv)
        if code:
            raise CommandError(f"solocron {' '.join(argv)}: exit code {code}", returncode=code)


def _run(argv: Sequence[str]) -> int:
    try:
        scheduler = current()
    except SolocronError as error:
        sys.stderr.write(f"solocron: {error}\n")
        return error.exit_code
    return hosted_main(scheduler, argv, program="manage.py solocron")


def _without_djangos(argv: Sequence[str]) -> list[str]:
    """Leave out the flags that `manage.py` has read before it imported the settings."""
    left, skip = list[str](), False
    for word in argv:
        if skip:
            skip = False
        elif word in _OF_DJANGO:
            skip = True
        elif not word.startswith(tuple(f"{flag}=" for flag in _OF_DJANGO)):
            left.append(word)
    return left
