"""`solocron doctor`: report what is wrong and what to do; `--repair` repairs what is safe to repair."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from solocron import surroundings
from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.exits import FAILED, OK
from solocron.cli.host import hosted, in_its_words
from solocron.cli.opening import named_store, refuse_empty
from solocron.duration import parse_duration, to_us
from solocron.errors import EmptyStore, StoreError
from solocron.runtime import Threads

if TYPE_CHECKING:
    from solocron.doctor import Circumstances
    from solocron.doctor.fleet import Pace
    from solocron.stores.contract import Check, Store
    from solocron.stores.url import Secret

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="repair what can be repaired safely, then look again")
    parser.add_argument("--lease", metavar="TIME", help="judge this lease")
    parser.add_argument("--beat", metavar="TIME", help="judge this beat (default: a third of the lease)")
    parser.add_argument("--keep", metavar="TIME", help="judge the history by this time (default: the nodes' own keep=)")
    parser.add_argument("--token-file", metavar="FILE", help="look at the tokens of `solocron serve` too")
    add_listing(parser)


def execute(args: Namespace) -> int:
    from solocron.doctor import empty, examine, repair, unreachable
    from solocron.doctor.line import FAIL

    done: list[str] = []
    around, runtime = _circumstances(args), Threads()
    try:
        store = named_store(args)
    except EmptyStore as error:
        _show(args, unreachable(str(error), around), done)
        return error.exit_code
    try:
        if (why := _is_empty(store)) is not None:
            _show(args, empty(store, why, around), done)
            return EmptyStore.exit_code
        checks = examine(store, runtime, around, writes=args.repair)
        if args.repair and checks[0].level != FAIL:  # the first line is the store itself
            done = repair(store, runtime, output.note)
            checks = examine(store, runtime, around, writes=True)
    finally:
        store.close()
    return _show(args, [*checks, *_tokens(args)], done)


def _tokens(args: Namespace) -> list[Check]:
    """Return the line about the callers of the HTTP service, if their file is named."""
    if args.token_file is None:
        return []
    from solocron.service.own_checks import check_callers
    from solocron.service.tokens import TokenFile

    return [check_callers(TokenFile(Path(args.token_file)))]


def _is_empty(store: Store) -> str | None:
    """Return why there is nothing to examine; a store that does not respond is a finding, and not empty."""
    try:
        store.open(read_only=True)
        refuse_empty(store)
    except EmptyStore as error:
        return str(error)
    except StoreError:
        pass
    return None


def _pace(args: Namespace) -> Pace | None:
    from solocron.doctor.fleet import Pace

    if args.lease is None and args.beat is None:
        return None
    lease = to_us(parse_duration(args.lease or timedelta(seconds=15), what="--lease"))
    beat = lease // 3000 * 1000 if args.beat is None else to_us(parse_duration(args.beat, what="--beat"))
    return Pace(lease, beat)


def _of_the_application() -> Secret | Store | None:
    """Return the store that the application around this command line has named, if there is one and it has."""
    from solocron.scheduler.hooks import core_of

    host = hosted()
    configuration = None if host is None else core_of(host.scheduler).configuration
    return configuration.store if configuration is not None and configuration.store_named else None


def _is_file(given: str | Secret | Store) -> bool:
    from solocron.stores.url import Secret, parse

    return isinstance(given, str | Secret) and parse(given).scheme == "sqlite"


def _circumstances(args: Namespace) -> Circumstances:
    from solocron.doctor import Circumstances
    from solocron.stores.url import url_of_environment

    environment = url_of_environment()
    given = args.store or _of_the_application() or environment
    file = surroundings.store_file() if given == environment else None
    return Circumstances(
        store_given=given is not None,
        in_container=surroundings.in_container(),
        store_file=None if file is None else Path(file),
        is_file=_is_file(given or surroundings.DEFAULT_STORE),
        pace=_pace(args),
        keep=None if args.keep is None else to_us(parse_duration(args.keep, what="--keep")),
    )


def _show(args: Namespace, checks: list[Check], done: list[str]) -> int:
    from solocron.doctor import failed
    from solocron.views import to_json

    bad = failed(checks)
    if args.json:
        output.dump({"ok": not bad, "checks": to_json(checks), "repaired": done})
        return FAILED if bad else OK
    for check in checks:
        remedy = f"    -> {in_its_words(check.remedy)}" if check.remedy else ""
        output.labelled(check.level, f"{check.name}: {in_its_words(check.detail)}{remedy}")
    for line in done:
        output.say(f"done  {line}")
    if args.repair and not done:
        output.note("there was nothing to repair")
    return FAILED if bad else OK
