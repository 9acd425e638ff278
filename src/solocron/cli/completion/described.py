"""The command line as a completion file has to know it: commands, flags, and what can stand as their values."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from dataclasses import dataclass

from solocron.cli.arguments import ListOf

__all__ = ["PLACE", "Argument", "DescribedCommand", "described"]

PLACE = ("--store", "--namespace")
"""Flags that say where the names of jobs and runs are looked up."""
_KINDS = {"JOB": "jobs", "JOB|EXPRESSION": "jobs", "RUN": "runs", "RUN|JOB": "runs"}
"""What `completion --values` is asked for, by the name of the value."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An option, or a positional argument where `names` is empty."""

    names: tuple[str, ...]
    help: str
    value: str | None
    """The name of its value; None if it takes none."""
    choices: tuple[str, ...] = ()
    """The values that it can have."""
    words: tuple[str, ...] = ()
    """The words that a list such as "a,b" can have."""
    optional: bool = False
    """True if its value may be left out."""

    @property
    def kind(self) -> str | None:
        """Return the kind of names that the store is asked for; None if its value names nothing there."""
        return None if self.value is None else _KINDS.get(self.value)

    @property
    def needs_value(self) -> bool:
        """Return whether the next word must be its value."""
        return bool(self.names) and self.value is not None and not self.optional


@dataclass(frozen=True, slots=True)
class DescribedCommand:
    """A command with its flags and positional arguments."""

    help: str
    flags: tuple[Argument, ...]

    @property
    def plain(self) -> list[str]:
        """The words that may stand where no value is expected."""
        flags = [name for flag in self.flags for name in flag.names]
        return flags + [choice for flag in self.positional for choice in flag.choices]

    @property
    def positional(self) -> list[Argument]:
        return [flag for flag in self.flags if not flag.names]


def described(parser: ArgumentParser) -> tuple[DescribedCommand, dict[str, DescribedCommand]]:
    """Return what may stand before a command, and every command."""
    (found,) = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    helps = {action.dest: action.help or "" for action in found._choices_actions}
    commands = {name: DescribedCommand(helps[name], tuple(_flags(sub))) for name, sub in found.choices.items()}
    return DescribedCommand("", tuple(_flags(parser))), commands


def _flags(parser: ArgumentParser) -> Iterator[Argument]:
    for action in parser._actions:
        if not isinstance(action, _SubParsersAction) and action.help is not SUPPRESS:
            yield Argument(
                names=tuple(action.option_strings),
                help=re.sub(r"\s+", " ", (action.help or "").replace("%%", "%")),
                value=None if action.nargs == 0 else _name(action),
                choices=tuple(map(str, action.choices or ())),
                words=action.type.known if isinstance(action.type, ListOf) else (),
                optional=bool(action.option_strings) and action.nargs == "?",
            )


def _name(action: Action) -> str:
    return str(action.metavar or action.dest).upper()
