"""The parser: every command, with the arguments that its own file declares.

Only the files of commands that the arguments name are imported, so that `--help` needs none of them.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NoReturn

from solocron.cli.arguments import FOREVER, add_store
from solocron.cli.exits import USAGE, explained
from solocron.cli.host import program
from solocron.near import did_you_mean, nearest
from solocron.version import __version__

__all__ = ["COMMANDS", "build", "module_of", "parse"]

COMMANDS: dict[str, str] = {
    "run": "run a node until it is told to stop",
    "tick": "do what is due once, for an external trigger",
    "run-slot": "run what is due of one job, or one attempt that was handed over: what a Pod does",
    "demo": "watch five replicas share the work, one killed, one frozen",
    "jobs": "list the jobs",
    "runs": "list what ran, what did not, and why",
    "show": "show one run, every attempt of it, or one job",
    "why": "say why a slot ran, waits, was skipped or is nowhere",
    "timeline": "draw who ran what, what was taken over, and what comes next",
    "nodes": "list the nodes",
    "health": "say whether the nodes of this machine are alive, for probes",
    "namespaces": "list the namespaces of the store",
    "status": "show nodes, what runs, and the last 24 hours",
    "top": "watch the fleet at work: nodes, carriers, runs, what comes next, alarms",
    "next": "show the next slots of a job or an expression",
    "explain": "say in words what an expression does",
    "plan": "show what the coming days hold: load, herds, clock changes, limits",
    "diff": "before a deployment: show what it would change",
    "trigger": "run a job now, or at an instant",
    "pause": "start nothing more of a job, of a pool or of all by schedule",
    "resume": "go on with a paused job, with a pool or with all",
    "rerun": "run a slot again, or all that failed",
    "backfill": "run every slot of a range of the past",
    "cancel": "stop a run",
    "remove": "forget a job that no running code declares",
    "adopt": "after a rollback: let a stored definition give way to the live nodes'",
    "restored": "after a backup was restored: let nothing before now run again",
    "import": "add the schedules of Celery beat, APScheduler or cron as jobs",
    "calendars": "list the business calendars, or the days off of one",
    "locks": "list the locks, or release one by force",
    "alarms": "list what is wrong, and silence or lift the silence of some of it",
    "limits": "list the limits across jobs, and who has their permits",
    "audit": "list who asked for what, newest first",
    "doctor": "look for what is wrong, and say what to do",
    "migrate": "make the store's tables, or bring them up to date",
    "serve": "show the namespace over HTTP, for programs and people",
    "metrics": "serve the metrics of the fleet to Prometheus",
    "export": "print alert rules for Prometheus, or a dashboard for Grafana",
    "token": "make a token for the HTTP service",
    "completion": "print what makes a shell complete the command line",
}
"""Every command with its summary, in the order of `--help`; its file in `cli/commands/` has its name (`_` for `-`)."""


class Parser(ArgumentParser):
    """Reports a usage error in one line, with the nearest valid word and where to read on."""

    def __init__(self, **options: Any) -> None:
        # No abbreviations: `--name` must not come to mean `--namespace`.
        super().__init__(formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False, epilog=explained(), **options)

    def error(self, message: str) -> NoReturn:
        hint = self._nearest(message)
        message = re.sub(r"argument COMMAND: invalid choice: ('[^']*') .*", r"there is no command \1", message)
        print(f"{self.prog}: {message}{hint}", file=sys.stderr)
        print(f"next: {self.prog} --help", file=sys.stderr)
        sys.exit(USAGE)

    def _nearest(self, message: str) -> str:
        """Return a hint from the sentence of argparse, which is all it gives; empty if it is worded otherwise."""
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice is not None:
            hint = did_you_mean(choice[1], [word.strip(" '") for word in choice[2].split(",")])
            return f"; {hint}" if hint else ""
        flag = re.search(r"unrecognized arguments: --([a-z-]+)", message)
        if flag is None:
            return ""
        # Without the dashes, which would count as alike: --until came near to --note.
        close = nearest(flag[1], [known[2:] for known in self._option_string_actions if known.startswith("--")])
        return f"; did you mean '--{close[0]}'?" if close else ""


def module_of(command: str) -> str:
    """Return the module of a command."""
    return f"solocron.cli.commands.{command.replace('-', '_')}"


def build(commands: Collection[str] = COMMANDS) -> ArgumentParser:
    """Return the parser; commands that are not among these take no arguments."""
    parser = Parser(prog=program(), description="Scheduled jobs that run once, however many replicas you run.")
    parser.add_argument("--version", action="version", version=f"solocron {__version__}")
    add_store(parser, default=None)
    found = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name, summary in COMMANDS.items():
        command = found.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.set_defaults(parser=command)
        if name in commands:
            import_module(module_of(name)).add_arguments(command)
    return parser


def parse(argv: Sequence[str]) -> Namespace:
    """Return the arguments of a command; usage errors and `--help` end in SystemExit, as argparse has it."""
    parser = build([name for name in COMMANDS if name in argv])
    args, unknown = parser.parse_known_args(_spell_out_wait(argv))
    if args.command is None:
        parser.print_help(sys.stderr)
        sys.exit(USAGE)
    if unknown:  # reported by the command, which knows its own flags
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def _spell_out_wait(argv: Sequence[str]) -> list[str]:
    """Give `trigger --wait JOB` its value: argparse would take the job for the number of seconds."""
    given = list(argv)
    for at, word in enumerate(given[:-1]):
        if word == "--wait" and not re.match(r"[0-9.]+([smh]|ms|$)", given[at + 1]):
            given[at] = f"--wait={FOREVER}"
    return given
