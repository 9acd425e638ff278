"""Every command and every flag, in one place. Nothing here imports what a command needs to do its work."""

from __future__ import annotations

import re
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from solocron.cli.exits import USAGE, explained
from solocron.version import __version__

__all__ = ["COMMANDS", "FOREVER", "build", "parse"]

FOREVER = "forever"
"""`--wait` without a number."""

Fill = Callable[[ArgumentParser], None]


class Parser(ArgumentParser):
    """Says what is wrong in one line, with the nearest thing that is right, and where to read on."""

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
        """argparse hands over only its sentence; where that is worded otherwise, the hint is simply left out."""
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice is not None:
            known = [word.strip(" '") for word in choice[2].split(",")]
        else:
            choice = re.search(r"unrecognized arguments: (--[a-z-]+)", message)
            known = [flag for flag in self._option_string_actions if flag.startswith("--")]
        close = get_close_matches(choice[1], known, n=1) if choice is not None else []
        return f"; did you mean {close[0]!r}?" if close else ""


def build(*, with_demo: bool = False) -> ArgumentParser:
    """The whole parser. The demo's flags are its own module's, read only when the demo is meant."""
    parser = Parser(prog="solocron", description="Scheduled jobs that run once, however many replicas you run.")
    parser.add_argument("--version", action="version", version=f"solocron {__version__}")
    _store(parser, default=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name, (summary, handler, fill) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.set_defaults(handler=handler, parser=command)
        fill(command)
        if name == "demo" and with_demo:
            from solocron.demo import add_arguments

            add_arguments(command)
            command._option_string_actions["--store"].default = SUPPRESS  # it may stand before the command, as ever
    return parser


def parse(argv: Sequence[str]) -> Namespace:
    """The arguments as a command gets them; usage errors and `--help` end in SystemExit, as argparse has it."""
    parser = build(with_demo="demo" in argv)
    args, unknown = parser.parse_known_args(_spell_out_wait(argv))
    if args.command is None:
        parser.print_help(sys.stderr)
        sys.exit(USAGE)
    if unknown:  # told by the command, which knows what is near
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def _spell_out_wait(argv: Sequence[str]) -> list[str]:
    """`trigger --wait JOB` has no number of seconds: argparse would take the job for one."""
    given = list(argv)
    for at, word in enumerate(given[:-1]):
        if word == "--wait" and not re.match(r"[0-9.]+([smh]|ms|$)", given[at + 1]):
            given[at] = f"--wait={FOREVER}"
    return given


# --- flags that several commands share -------------------------------------------------------------------------------


def _store(parser: ArgumentParser, default: str | None = SUPPRESS) -> None:
    """Before or after the command: a command that is not given them leaves what was said before it."""
    parser.add_argument(
        "--store",
        metavar="URL",
        default=default,
        help="the store (default: $SOLOCRON_STORE, else sqlite:///solocron.db)",
    )
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        default=default,
        help="the namespace in the store (default: $SOLOCRON_NAMESPACE, else default)",
    )


def _json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON value, for programs")


def _listing(parser: ArgumentParser) -> None:
    _store(parser)
    _json(parser)


def _job(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    _listing(parser)


def _run_id(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the run's id, as `solocron runs` shows it")
    _listing(parser)


def _expression(parser: ArgumentParser, what: str) -> None:
    parser.add_argument(
        "what", metavar=what, help="a cron expression in quotes" + (", or a job" if "|" in what else "")
    )
    parser.add_argument("--tz", metavar="ZONE", help="its time zone (default: UTC; of a job: its own)")
    parser.add_argument("--from", dest="start", metavar="INSTANT", help="show what comes after this (default: now)")
    parser.add_argument("--name", metavar="JOB", help="the job's name, from which H in an expression is made")
    parser.add_argument("--gap", choices=("run-after", "skip"), help="a time that the clocks skip (default: run-after)")
    parser.add_argument("--fold", choices=("first", "last", "both"), help="a time that comes twice (default: first)")


def _many(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_count.__name__ = "whole number from 1 up"  # argparse puts the name of the type into its message


def _node(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="module, module:scheduler or path to a .py file")
    _store(parser)
    parser.add_argument("--pools", metavar="A,B", type=_many, help="the pools whose jobs it runs (default: default)")
    parser.add_argument("--lease", metavar="TIME", help="how long its claims outlive its last renewal (default: 15s)")
    parser.add_argument("--max-running", metavar="N", type=_count, help="how many runs at once (default: 32)")
    parser.add_argument("--node", metavar="NAME", help="its name (default: host, process and a random part)")
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="how log lines look (default: text)"
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what is logged (default: info)",
    )


# --- the commands ----------------------------------------------------------------------------------------------------


def _run(parser: ArgumentParser) -> None:
    _node(parser)
    parser.add_argument("--grace", metavar="TIME", default="30s", help="for runs to end at SIGTERM (default: 30s)")


def _tick(parser: ArgumentParser) -> None:
    _node(parser)
    _json(parser)


def _runs(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", nargs="?", help="only the runs of this job")
    parser.add_argument(
        "--limit", metavar="N", type=_count, default=50, help="at most so many, newest first (default: 50)"
    )
    parser.add_argument("--status", metavar="A,B", type=_many, action="extend", help="only these, such as failed,lost")
    _listing(parser)


def _next(parser: ArgumentParser) -> None:
    _expression(parser, "JOB|EXPRESSION")
    parser.add_argument("-n", dest="n", metavar="N", type=_count, default=10, help="how many (default: 10)")
    _listing(parser)


def _explain(parser: ArgumentParser) -> None:
    _expression(parser, "EXPRESSION")
    parser.add_argument("-n", dest="n", metavar="N", type=_count, default=1, help="how many slots to show (default: 1)")
    _json(parser)


def _trigger(parser: ArgumentParser) -> None:
    parser.add_argument("--payload", metavar="JSON", help="what the run gets to see as its payload")
    parser.add_argument("--at", metavar="INSTANT", help="not now but then, or after a time such as 10m")
    parser.add_argument("--key", metavar="KEY", help="the same key twice is one run")
    parser.add_argument("--shard", metavar="SLICE", help="of a sharded job, only this shard")
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        nargs="?",
        const=FOREVER,
        help="wait for its end; exit 1 if it fails, 6 if too long",
    )
    _job(parser)


def _pause(parser: ArgumentParser) -> None:
    parser.add_argument("--by", metavar="WHO", help="who pauses it (default: the user of this terminal)")
    parser.add_argument("--note", metavar="WHY", help="why; shown wherever the job is")
    parser.add_argument("--until", metavar="INSTANT", help="when it goes on by itself, or after a time such as 2h")
    _job(parser)


def _resume(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what it would do")
    _job(parser)


def _rerun(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    parser.add_argument("slot", metavar="SLOT", nargs="?", help="the slot, as `solocron runs` shows it")
    parser.add_argument(
        "--failed-since", metavar="INSTANT", help="every slot that failed since, or a time ago such as 2h"
    )
    parser.add_argument("--key", metavar="KEY", help="the same key twice is one rerun")
    parser.add_argument(
        "--watch", action="store_true", help="wait for the end with a progress bar; exit 1 if one fails"
    )
    _listing(parser)


def _backfill(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    parser.add_argument("start", metavar="START", help="from this instant on, or a time ago such as 30d")
    parser.add_argument("end", metavar="END", help="up to before this instant, or a time ago such as 0s")
    parser.add_argument("--limit", metavar="N", type=_count, help="at most so many, the newest")
    parser.add_argument("--rate", metavar="RATE", help="start no faster than that, such as 10/m")
    parser.add_argument("--dry-run", action="store_true", help="only count")
    parser.add_argument("--watch", action="store_true", help="wait for the end with a progress bar")
    _listing(parser)


def _adopt(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", nargs="?", help="the job's name")
    parser.add_argument("--all", action="store_true", help="every job that is of a higher revision than the live nodes")
    _listing(parser)


def _restored(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="in every namespace of the store")
    _listing(parser)


def _calendars(parser: ArgumentParser) -> None:
    parser.add_argument("calendar", metavar="NAME", nargs="?", help="the days off of this one")
    _listing(parser)


def _locks(parser: ArgumentParser) -> None:
    parser.add_argument("--release", metavar="NAME", help="take this lock from whoever has it")
    parser.add_argument("--reason", metavar="WHY", help="why it is released by force; stays on record")
    parser.add_argument("--by", metavar="WHO", help="who releases it (default: the user of this terminal)")
    _listing(parser)


def _doctor(parser: ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="repair what can be repaired safely, then look again")
    parser.add_argument("--lease", metavar="TIME", help="judge this lease")
    parser.add_argument("--beat", metavar="TIME", help="judge this beat (default: a third of the lease)")
    parser.add_argument(
        "--keep", metavar="TIME", default="30d", help="for how long the nodes keep records (default: 30d)"
    )
    _listing(parser)


def _migrate(parser: ArgumentParser) -> None:
    parser.add_argument("--status", action="store_true", help="only say how far it has come; exit 1 if it is old")
    parser.add_argument("--sql", action="store_true", help="only print it, and the rights that nodes need")
    _listing(parser)


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours <= 10_000:
        raise ValueError(text)
    return hours


_hours.__name__ = "number of hours above 0"


def _simulate(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", metavar="N", type=_count, default=20, help="how many worlds (default: 20)")
    parser.add_argument("--from", dest="start", metavar="SEED", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seed", metavar="SEED", type=int, help="only this world, as a failure names it")
    parser.add_argument("--nodes", metavar="N", type=_count, default=5, help="nodes of each world (default: 5)")
    parser.add_argument(
        "--hours", metavar="H", type=_hours, default=0.5, help="hours under fire at a lease of 15 s (default: 0.5)"
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", help="an option of every world, such as kill=0 or lease=3"
    )
    parser.add_argument("--jobs", metavar="N", type=_count, default=1, help="processes to use (default: 1)")
    parser.add_argument(
        "--no-shrink",
        dest="shrink",
        action="store_false",
        help="show a failure as it is, without looking for a smaller one",
    )
    parser.add_argument("--lines", action="store_true", help="print one line of JSON a world, as it ends")
    _json(parser)


def _completion(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _nothing(parser: ArgumentParser) -> None:
    """The demo's flags come from its own module."""


_HERE = "solocron.cli.commands"

COMMANDS: dict[str, tuple[str, str, Fill]] = {
    "run": ("run a node until it is told to stop", f"{_HERE}.running:run", _run),
    "tick": ("do what is due once, for an external trigger", f"{_HERE}.running:tick", _tick),
    "demo": ("watch five replicas share the work, one killed, one frozen", f"{_HERE}.running:demo", _nothing),
    "jobs": ("list the jobs", f"{_HERE}.looking:jobs", _listing),
    "runs": ("list what ran, what did not, and why", f"{_HERE}.looking:runs", _runs),
    "show": ("show one run, every attempt of it", f"{_HERE}.looking:show", _run_id),
    "nodes": ("list the nodes", f"{_HERE}.looking:nodes", _listing),
    "namespaces": ("list the namespaces of the store", f"{_HERE}.looking:namespaces", _listing),
    "status": ("show nodes, what runs, and the last 24 hours", f"{_HERE}.looking:status", _listing),
    "next": ("show the next slots of a job or an expression", f"{_HERE}.planning:following", _next),
    "explain": ("say in words what an expression does", f"{_HERE}.planning:explain", _explain),
    "trigger": ("run a job now, or at an instant", f"{_HERE}.asking:trigger", _trigger),
    "pause": ("start nothing more of a job by schedule", f"{_HERE}.asking:pause", _pause),
    "resume": ("go on with a paused job", f"{_HERE}.asking:resume", _resume),
    "rerun": ("run a slot again, or all that failed", f"{_HERE}.again:rerun", _rerun),
    "backfill": ("run every slot of a range of the past", f"{_HERE}.again:backfill", _backfill),
    "cancel": ("stop a run", f"{_HERE}.asking:cancel", _run_id),
    "remove": ("forget a job that no running code declares", f"{_HERE}.asking:remove", _job),
    "adopt": (
        "after a rollback: let a stored definition give way to the live nodes'",
        f"{_HERE}.asking:adopt",
        _adopt,
    ),
    "restored": (
        "after a backup was restored: let nothing before now run again",
        f"{_HERE}.asking:restored",
        _restored,
    ),
    "calendars": (
        "list the business calendars, or the days off of one",
        f"{_HERE}.calendars:calendars",
        _calendars,
    ),
    "locks": ("list the locks, or release one by force", f"{_HERE}.locks:locks", _locks),
    "limits": ("list the limits across jobs, and who has their permits", f"{_HERE}.looking:limits", _listing),
    "doctor": ("look for what is wrong, and say what to do", f"{_HERE}.examining:doctor", _doctor),
    "migrate": ("make the store's tables, or bring them up to date", f"{_HERE}.migrating:migrate", _migrate),
    "simulate": ("put the engine through simulated faults, and check it", f"{_HERE}.simulating:simulate", _simulate),
    "completion": ("print what makes a shell complete the command line", f"{_HERE}.completing:completion", _completion),
}
