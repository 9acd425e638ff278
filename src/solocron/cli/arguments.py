"""Arguments that several commands share, and the types of their values."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import Iterable
from dataclasses import dataclass

from solocron.cli.host import hosted
from solocron.errors import InvalidError
from solocron.near import did_you_mean

__all__ = [
    "FOREVER",
    "ListOf",
    "add_expression",
    "add_job",
    "add_json",
    "add_listing",
    "add_log",
    "add_namespace",
    "add_node",
    "add_run",
    "add_store",
    "add_target",
    "add_watch",
    "chosen",
    "count",
    "listed",
    "names",
]

FOREVER = "forever"
"""`--wait` without a number."""


def names(value: str) -> tuple[str, ...]:
    """Split a list such as "a,b"."""
    return tuple(word.strip() for word in value.split(",") if word.strip())


@dataclass(frozen=True, slots=True)
class ListOf:
    """The type of a list such as "a,b" of known words. Completion offers them; `chosen` refuses any other."""

    known: tuple[str, ...]

    def __call__(self, value: str) -> tuple[str, ...]:
        return names(value)


def count(value: str) -> int:
    """Read a whole number from 1 up."""
    try:
        number = int(value)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{value!r:.40} is not a whole number from 1 up")
    return number


def listed(flag: str, given: Iterable[str] | None) -> frozenset[str]:
    """Return the words of a flag; refuse a list without any, which would ask for nothing and find everything."""
    words = frozenset(given or ())
    if given is not None and not words:
        raise InvalidError(f"{flag}: the list is empty; name what is wanted, or leave the flag out.")
    return words


def chosen(flag: str, given: Iterable[str] | None, known: Iterable[str]) -> frozenset[str]:
    """Return the words of a flag; refuse one that is not known, with the nearest that is."""
    words, valid = listed(flag, given), [str(one) for one in known]
    for word in sorted(words - set(valid)):
        hint = did_you_mean(word, valid, f"choose from {', '.join(valid)}.")
        raise InvalidError(f"{flag}: {word!r:.40} is not known; {hint}")
    return words


def add_store(parser: ArgumentParser, default: str | None = SUPPRESS) -> None:
    """Add --store and --namespace, which may stand before or after the command.

    With the default SUPPRESS a command that is not given them leaves what was said before it.
    """
    store, namespace = "$SOLOCRON_STORE, else sqlite:///solocron.db", "$SOLOCRON_NAMESPACE, else default"
    if hosted() is not None:
        store = namespace = "the application's"
    parser.add_argument("--store", metavar="URL", default=default, help=f"the store (default: {store})")
    add_namespace(parser, f"the namespace in the store (default: {namespace})", default)


def add_namespace(parser: ArgumentParser, meaning: str, default: str | None = SUPPRESS) -> None:
    """Add --namespace, which may stand before or after the command."""
    parser.add_argument("--namespace", metavar="NAME", default=default, help=meaning)


def add_target(parser: ArgumentParser, *, purpose: str = "", optional: bool = False) -> None:
    """Add TARGET; inside an application's own command line there is none to name."""
    host = hosted()
    if host is not None:
        parser.set_defaults(target=host.program)
        return
    words = "module, module:scheduler or path to a .py file"
    parser.add_argument("target", metavar="TARGET", nargs="?" if optional else None, help=f"{words}{purpose}")


def add_json(parser: ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON value, for programs")


def add_listing(parser: ArgumentParser) -> None:
    """Add what every command on a store takes: --store, --namespace, --json."""
    add_store(parser)
    add_json(parser)


def add_watch(parser: ArgumentParser) -> None:
    """Add --watch."""
    parser.add_argument("--watch", action="store_true", help="draw it again and again until Ctrl-C; needs a terminal")


def add_job(parser: ArgumentParser) -> None:
    """Add JOB, and what every command on a store takes."""
    parser.add_argument("job", metavar="JOB", help="the job's name")
    add_listing(parser)


def add_run(parser: ArgumentParser) -> None:
    """Add RUN, and what every command on a store takes."""
    parser.add_argument("run", metavar="RUN", help="the run's id, as `solocron runs` shows it")
    add_listing(parser)


def add_expression(parser: ArgumentParser, metavar: str, *, slots: int, help: str, help_n: str) -> None:
    """Add a cron expression and how to read it; `slots` is the default of -n."""
    parser.add_argument("what", metavar=metavar, help=help)
    parser.add_argument("--tz", metavar="ZONE", help="its time zone (default: UTC; of a job: its own)")
    parser.add_argument("--from", dest="start", metavar="INSTANT", help="show what comes after this (default: now)")
    parser.add_argument("--name", metavar="JOB", help="the job's name, from which H in an expression is made")
    parser.add_argument("--gap", choices=("run-after", "skip"), help="a time that the clocks skip (default: run-after)")
    parser.add_argument("--fold", choices=("first", "last", "both"), help="a time that comes twice (default: first)")
    parser.add_argument("-n", dest="n", metavar="N", type=count, default=slots, help=f"{help_n} (default: {slots})")


def add_node(parser: ArgumentParser) -> None:
    """Add what a command that runs a node takes."""
    add_target(parser)
    add_store(parser)
    parser.add_argument("--pools", metavar="A,B", type=names, help="the pools whose jobs it runs (default: default)")
    parser.add_argument("--lease", metavar="TIME", help="how long its claims outlive its last renewal (default: 15s)")
    parser.add_argument("--max-running", metavar="N", type=count, help="how many runs at once (default: 32)")
    parser.add_argument("--node", metavar="NAME", help="its name (default: host, process and a random part)")
    add_log(parser)


def add_log(parser: ArgumentParser) -> None:
    """Add the form and the level of the log on stderr."""
    parser.add_argument("--log-format", choices=("text", "json"), help="how log lines look (default: text)")
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="what is logged (default: info)"
    )
