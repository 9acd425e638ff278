"""`solocron doctor`: the lines, what was repaired, and an exit code that says whether something is wrong."""

from __future__ import annotations

from argparse import Namespace
from datetime import timedelta

from solocron import surroundings
from solocron.cli import output
from solocron.cli.exits import FAILED, OK
from solocron.cli.opening import named_store, refuse_empty
from solocron.doctor import Circumstances, empty, examine, failed, repair, unreachable
from solocron.doctor.fleet import Pace
from solocron.doctor.line import FAIL
from solocron.duration import parse_duration, to_us
from solocron.errors import EmptyStore, StoreError
from solocron.runtime import Threads
from solocron.stores.contract import Check, Store
from solocron.stores.url import parse
from solocron.views import to_json

__all__ = ["doctor"]


def doctor(args: Namespace) -> int:
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
    return _show(args, checks, done)


def _is_empty(store: Store) -> str | None:
    """Why there is nothing to examine; a store that does not answer is a finding, and not empty."""
    try:
        store.open(read_only=True)
        refuse_empty(store)
    except EmptyStore as error:
        return str(error)
    except StoreError:
        pass
    return None


def _pace(args: Namespace) -> Pace | None:
    if args.lease is None and args.beat is None:
        return None
    lease = to_us(parse_duration(args.lease or timedelta(seconds=15), what="--lease"))
    beat = lease // 3000 * 1000 if args.beat is None else to_us(parse_duration(args.beat, what="--beat"))
    return Pace(lease, beat)


def _circumstances(args: Namespace) -> Circumstances:
    given = args.store or surroundings.store_url()
    return Circumstances(
        store_given=given is not None,
        in_container=surroundings.in_container(),
        is_file=parse(given or surroundings.DEFAULT_STORE).scheme == "sqlite",
        pace=_pace(args),
        keep=to_us(parse_duration(args.keep, what="--keep")),
    )


def _show(args: Namespace, checks: list[Check], done: list[str]) -> int:
    bad = failed(checks)
    if args.json:
        output.dump({"ok": not bad, "checks": to_json(checks), "repaired": done})
        return FAILED if bad else OK
    for check in checks:
        remedy = f"    -> {check.remedy}" if check.remedy else ""
        output.labelled(check.level, f"{check.name}: {check.detail}{remedy}")
    for text in done:
        output.say(f"done  {text}")
    if args.repair and not done:
        output.note("there was nothing to repair")
    return FAILED if bad else OK
