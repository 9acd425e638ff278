"""`python -m proof COMMAND`: simulate, gate, mutants, chaos, handover. `COMMANDS` names the module of each."""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module

from solocron.cli.exits import INTERRUPTED
from solocron.errors import SolocronError

__all__ = ["main", "parse"]

COMMANDS = {
    "simulate": ("proof.simulator.command", "put the engine through simulated faults, and check it"),
    "gate": ("proof.gate", "a thousand worlds; goes on where it was interrupted, and can write its report"),
    "mutants": ("proof.mutants.command", "put every bug of the list into the code: each must be noticed"),
    "chaos": ("proof.chaos.command", "real nodes on real servers under every fault of the matrix"),
    "handover": ("proof.handover.command", "real nodes, workers and brokers of every queue under kills"),
}
"""Every command: the module that holds it, and its summary."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a mistake of the caller is one message on stderr."""
    args = parse(sys.argv[1:] if argv is None else argv)
    logging.getLogger("solocron").addHandler(logging.NullHandler())  # injected faults make warnings by the hundred
    try:
        code: int = import_module(COMMANDS[args.command][0]).execute(args)
    except SolocronError as error:
        print(f"python -m proof {args.command}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def parse(argv: Sequence[str]) -> Namespace:
    """Return the arguments of a command; usage errors and `--help` end in SystemExit, as argparse has it."""
    parser = ArgumentParser(prog="python -m proof", description="The proof of the shipped engine.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name in argv[:1]:  # the others would import pytest and the servers
            import_module(module).add_arguments(command)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
