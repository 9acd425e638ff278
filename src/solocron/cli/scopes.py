"""The scope of a command: one job, or many jobs at once."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, TypedDict

from solocron.cli.arguments import add_listing
from solocron.cli.host import program
from solocron.cli.moments import utc
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.views import JobView, PauseView, ScopedPauseView

__all__ = ["add_scope", "circumstances", "held_back", "is_scoped", "jobs_under", "scope_of", "scope_words"]


class _Scope(TypedDict, total=False):
    pool: str
    match: str


def add_scope(parser: ArgumentParser) -> None:
    """Add JOB, --all, --pool and --match, and what every command on a store takes."""
    parser.add_argument("job", metavar="JOB", nargs="?", help="the job's name")
    parser.add_argument("--all", action="store_true", help="every job of the namespace, those deployed later included")
    parser.add_argument("--pool", metavar="POOL", help="every job of this pool")
    parser.add_argument("--match", metavar="PATTERN", help="every job whose name matches, such as 'invoice:*'")
    add_listing(parser)


def is_scoped(args: Namespace, undone: str) -> bool:
    """Return whether the command is about many jobs; raise unless exactly one of the four was given."""
    given = [args.job is not None, args.all, args.pool is not None, args.match is not None]
    if sum(given) != 1:
        raise InvalidError(f"give one of JOB, --all, --pool and --match; {undone}.")
    return args.job is None


def scope_of(args: Namespace) -> _Scope:
    """Return the scope as the keywords of `pause_all` and `resume_all`."""
    if args.pool is not None:
        return {"pool": args.pool}
    return {} if args.match is None else {"match": args.match}


def scope_words(scope: _Scope) -> str:
    """Return the flag that names a scope, as it stands in the audit."""
    return next((f"--{name} {value}" for name, value in scope.items()), "--all")


def jobs_under(client: Client, pause: ScopedPauseView) -> list[str]:
    """Return the names of the jobs that a pause covers now."""
    return [job.name for job in client.jobs() if any(one.scope == pause.scope for one in job.pauses)]


def circumstances(pause: PauseView | ScopedPauseView) -> str:
    """Return the author, the end and the reason of a pause, as far as they are known."""
    by = f"by {pause.by}" if pause.by else ""
    until = f"until {utc(pause.until)}" if pause.until else ""
    return ": ".join(filter(None, [" ".join(filter(None, [by, until])), pause.note]))


def held_back(job: JobView) -> str:
    """Return why a run of the job that was requested does not start, and how to lift it; empty if no pause keeps it."""
    keeping = [one for one in job.pauses if one.triggers]
    if not keeping:
        return ""
    scopes = ", ".join(f"{one.scope} {circumstances(one)}".rstrip() for one in keeping)
    lift = " and ".join(f"{program()} resume {one.option}" for one in keeping)
    return f"what is requested of {job.name} waits while a pause stands ({scopes}); lift: {lift}"
