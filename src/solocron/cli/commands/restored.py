"""`solocron restored`: after a backup was restored, let nothing before now run again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.auditing import audited_act
from solocron.cli.author import add_author, author_of
from solocron.cli.exits import OK
from solocron.cli.opening import each_namespace, opened
from solocron.errors import InvalidError, StoreError

if TYPE_CHECKING:
    from solocron.client import Client

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="in every namespace of the store")
    add_author(parser, "restored the backup")
    add_listing(parser)


def execute(args: Namespace) -> int:
    if args.all:
        return _everywhere(args)
    with opened(args) as client:
        count = _restore(args, client)
    if args.json:
        return output.dump({"jobs": count})
    output.say(f"{count} jobs moved to now; what the backup does not know of will not run again")
    return OK


def _restore(args: Namespace, client: Client) -> int:
    subject = f"namespace {client.store.namespace}"
    with audited_act(client, args.command, subject, by=author_of(args), note=args.note):
        return client.restored()


def _everywhere(args: Namespace) -> int:
    """Restore one namespace after the other; a failure names its namespace, and those before it stay moved."""
    if args.namespace is not None:
        raise InvalidError(
            "--all is every namespace, so --namespace has no meaning; nothing was changed. Give one of them."
        )
    counts: dict[str, int] = {}
    for client in each_namespace(args):
        name = client.store.namespace
        try:
            counts[name] = _restore(args, client)
        except StoreError as error:
            raise type(error)(f"namespace {name}: {error}") from None
        if not args.json:
            output.say(f"{name}: {counts[name]} jobs moved to now; what the backup does not know of will not run again")
    if args.json:
        return output.dump({"jobs": sum(counts.values()), "namespaces": counts})
    if not counts:
        output.note("the store holds no namespace; nothing was changed")
    return OK
