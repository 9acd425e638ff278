"""`solocron migrate`: bring the schema up to date, say how far it has come, or print it for an administrator."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from solocron import surroundings
from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.exits import FAILED, OK
from solocron.cli.opening import named_store
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.stores.sql import migrations

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--status", action="store_true", help="only say how far it has come; exit 1 if it is old")
    parser.add_argument("--sql", action="store_true", help="only print it, and the rights that nodes need")
    add_listing(parser)


def execute(args: Namespace) -> int:
    from solocron.stores.sql import migrations
    from solocron.stores.sql.store import SqlStore

    if args.sql and args.status:
        raise InvalidError("--sql and --status are two questions; nothing was done. Ask one.")
    if args.sql:
        return _print_sql(args)
    store = named_store(args, make=not args.status)
    try:
        if not isinstance(store, SqlStore):
            return _show(args, None, None, f"{store.url} has no schema: there is nothing to migrate")
        before = migrations.status(store) if store.exists() else migrations.SchemaStatus(None)
        if args.status:
            return _show(args, before, before, _standing(before))
        store.migrate()
        after = migrations.status(store)
        changed = after.applied != before.applied
        made = "made" if before.applied is None else f"brought from {before.applied}"
        return _show(args, before, after, f"{made}, now {_standing(after)}" if changed else _standing(after))
    finally:
        store.close()


def _print_sql(args: Namespace) -> int:
    """Print the schema for the URL alone; no connection is made."""
    from solocron.stores.sql import migrations
    from solocron.stores.url import parse

    url = parse(args.store or surroundings.store_url() or surroundings.DEFAULT_STORE)
    if url.scheme not in migrations.DIALECTS:
        raise InvalidError(f"{url.masked} has no schema, so there is no SQL to print.")
    options = {"schema": url.options.get("schema")} if url.scheme.startswith("postgres") else {}
    for line in migrations.sql(url.scheme, prefix=url.options.get("prefix", "solocron_"), **options).splitlines():
        output.say(line)
    return OK


def _standing(status: migrations.SchemaStatus) -> str:
    if status.applied is None:
        return f"0 of {status.latest}: there is none yet; run `solocron migrate`"
    if status.applied < status.latest:
        return f"{status.applied} of {status.latest}: old; run `solocron migrate`"
    if status.applied > status.latest:
        return f"{status.applied}, newer than this Solocron's {status.latest}, which can work with it"
    return f"{status.applied} of {status.latest}: up to date"


def _show(
    args: Namespace, before: migrations.SchemaStatus | None, after: migrations.SchemaStatus | None, message: str
) -> int:
    if args.json:
        output.dump(
            {
                "before": None if before is None else before.applied,
                "applied": None if after is None else after.applied,
                "latest": None if after is None else after.latest,
                "current": after is None or after.current,
            }
        )
    else:
        output.say(message if after is None else f"schema {message}")
    return OK if after is None or after.current else FAILED
