"""`solocron runs`: list the runs, and the slots that did not run, each with its reason."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import ListOf, add_listing, add_watch, chosen, count
from solocron.cli.exits import OK
from solocron.cli.moments import earlier, utc
from solocron.cli.opening import opened, same_store
from solocron.cli.rendering import runs_table, runs_table_in_pages
from solocron.clock import iso, to_us
from solocron.errors import InvalidError
from solocron.model.documents.run import Origin, Status

if TYPE_CHECKING:
    from datetime import datetime

    from solocron.client import Client
    from solocron.client.run_listing import RunCursor, RunPage, WantedRuns
    from solocron.views import RunView

__all__ = ["add_arguments", "execute"]

_LIMIT = 50


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", nargs="?", help="only the runs of this job")
    parser.add_argument(
        "--status", metavar="A,B", type=ListOf(tuple(Status)), action="extend", help="only these, such as failed,lost"
    )
    parser.add_argument(
        "--origin", metavar="A,B", type=ListOf(tuple(Origin)), action="extend", help="only these, such as trigger,rerun"
    )
    parser.add_argument("--node", metavar="NAME", help="only those of this node")
    parser.add_argument("--since", metavar="INSTANT", help="only what ended then or later; 2h is so long ago")
    parser.add_argument("--until", metavar="INSTANT", help="only what ended before then; 2h is so long ago")
    parser.add_argument("--limit", metavar="N", type=count, help=f"at most so many, newest first (default: {_LIMIT})")
    parser.add_argument("--before", metavar="PLACE", help="go on there, as the listing before said")
    parser.add_argument("--all", action="store_true", help="every one of them; with --json one object a line")
    add_watch(parser)
    add_listing(parser)


def execute(args: Namespace) -> int:
    _refuse_contradictions(args)
    before = _place(args.before)
    statuses, origins = chosen("--status", args.status, Status), chosen("--origin", args.origin, Origin)
    with opened(args) as client:
        wanted = _filter(args, client, statuses, origins)
        if args.watch:
            from solocron.cli.watching import watch

            watch(lambda: _draw(client, wanted, args.limit or _LIMIT))
        if args.all:
            return _print_all(args, client.every_run(wanted, before=before))
        page = client.run_page(wanted, limit=args.limit or _LIMIT, before=before)
        if args.json:
            output.dump_views(page.runs)
        elif page.runs:
            runs_table(page.runs)
        else:
            output.note("no runs on record" + (f" of {args.job}" if args.job else ""))
        _say_how_to_go_on(args, wanted, page)
    return OK


def _refuse_contradictions(args: Namespace) -> None:
    if args.watch:
        from solocron.cli.watching import refuse_without_terminal

        for flag, given in (("--json", args.json), ("--all", args.all), ("--before", args.before)):
            if given:
                raise InvalidError(f"--watch shows the newest runs, so {flag} does not go with it; nothing was read.")
        refuse_without_terminal()
    if args.all and args.limit is not None:
        raise InvalidError("--all lists every run, so --limit does not go with it; nothing was read.")


def _place(text: str | None) -> RunCursor | None:
    from solocron.client.run_listing import RunCursor

    if text is None:
        return None
    try:
        return RunCursor.parse(text)
    except (ValueError, OverflowError):
        raise InvalidError(
            f"--before: {text!r:.60} is not a place in the listing; take the one that `solocron runs` printed last."
        ) from None


def _filter(args: Namespace, client: Client, statuses: frozenset[str], origins: frozenset[str]) -> WantedRuns:
    from solocron.client.run_listing import WantedRuns

    def ago(flag: str, text: str | None) -> datetime | None:
        return None if text is None else earlier(text, flag, client.store.clock())

    return WantedRuns(
        job=args.job,
        statuses=statuses,
        origins=origins,
        node=args.node,
        since=ago("--since", args.since),
        until=ago("--until", args.until),
    )


def _draw(client: Client, wanted: WantedRuns, limit: int) -> None:
    from solocron.clock import from_us

    output.say(f"{utc(from_us(client.store.clock()))} UTC by the store's clock")
    runs_table(client.run_page(wanted, limit=limit).runs)


def _print_all(args: Namespace, pages: Iterator[tuple[RunView, ...]]) -> int:
    """Print every run as it comes; memory stays that of a page."""
    from solocron.views import to_json

    if args.json:
        for page in pages:
            for run in page:
                print(json.dumps(to_json(run), allow_nan=False))
    else:
        runs_table_in_pages(pages)
    return OK


def _say_how_to_go_on(args: Namespace, wanted: WantedRuns, page: RunPage) -> None:
    """Print the command for what follows; on stderr, so that stdout is the data alone."""
    if page.next is None:
        return
    if page.looked_back_to is not None:
        output.note(
            f"the search was broken off at {utc(page.looked_back_to)} UTC, {len(page.runs)} runs found until there"
        )
    words = ["solocron", "runs", *([args.job] if args.job else []), *same_store(args)]
    flags = {
        "--status": ",".join(sorted(wanted.statuses)),
        "--origin": ",".join(sorted(wanted.origins)),
        "--node": args.node,
        "--since": None if wanted.since is None else iso(to_us(wanted.since)),
        "--until": None if wanted.until is None else iso(to_us(wanted.until)),
        "--limit": None if args.limit is None else str(args.limit),
        "--before": str(page.next),
    }
    words += [word for flag, value in flags.items() if value for word in (flag, value)]
    output.note(f"next: {shlex.join([*words, *(['--json'] if args.json else [])])}")
