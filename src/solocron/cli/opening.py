"""A client on the store that was named, for commands that run no node. They never create a store by accident.

The client and the stores are imported when a command opens one, so that help and completion do not pay for them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from solocron import surroundings
from solocron.cli.host import HostApplication, hosted
from solocron.errors import EmptyStore, InvalidError, NotFoundError
from solocron.near import did_you_mean

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.stores.contract import Store

__all__ = ["each_namespace", "named_store", "opened", "refuse_empty", "same_store"]

_NAMES = 10_000
"""Names of jobs among which the nearest to a wrong one is looked for."""


@contextmanager
def opened(args: Namespace) -> Iterator[Client]:
    """Yield a client whose store is open for reading until it writes, and close the store afterwards."""
    from solocron.client import Client

    store = named_store(args)
    try:
        store.open(read_only=True)
        refuse_empty(store)
        client = Client(store)
        try:
            yield client
        except NotFoundError as error:
            raise NotFoundError(f"{error}{_hint(client, args)}") from None
    finally:
        store.close()


def _hint(client: Client, args: Namespace) -> str:
    """Return the nearest name, if the command was given a job that does not exist."""
    from solocron.model.change import Kind

    given = getattr(args, "job", None) or getattr(args, "what", None)
    if given is None or "@" in given:  # what is not there is something else, or a run
        return ""
    names = client.store.names(Kind.JOB, limit=_NAMES)
    if given in names:
        return ""
    hint = did_you_mean(given, names, "`solocron jobs` lists them.")
    return f" {hint[0].upper()}{hint[1:]}"


def same_store(args: Namespace) -> list[str]:
    """Return the flags that name the same store again, without its password."""
    from solocron.stores.url import Secret

    given: list[str] = []
    if args.store:
        given += ["--store", args.store if Secret(args.store).masked == args.store else "URL"]
    if args.namespace:
        given += ["--namespace", args.namespace]
    return given


def _store_of(host: HostApplication, namespace: str | None) -> Store:
    """Return the store of an application's scheduler, not opened; another one for another namespace."""
    from solocron.scheduler.hooks import core_of
    from solocron.stores.url import Secret, make_store

    core = core_of(host.scheduler)
    place = core.configuration.store
    if not isinstance(place, Secret) or not core.store.capabilities.shared:
        return core.store
    return make_store(place, namespace=namespace or core.configuration.namespace)


def refuse_empty(store: Store) -> None:
    """Raise if nothing was ever written in this namespace: it is most often the wrong one."""
    from solocron.model.change import Kind
    from solocron.stores.contract import All, Query
    from solocron.stores.weakness import nothing_at

    if any(store.read(All(kind, limit=1)) for kind in Kind) or store.history(Query(limit=1)).records:
        return
    raise EmptyStore(nothing_at(store.url, f"namespace {store.namespace!r} is empty"))


def each_namespace(args: Namespace) -> Iterator[Client]:
    """Yield a client for every namespace of the store, one after the other, each open while it is used."""
    from solocron.stores.namespaces import ManyNamespaces

    store = named_store(args)
    try:
        if not isinstance(store, ManyNamespaces):
            raise InvalidError(
                f"{store.url} cannot list its namespaces; name one with --namespace. Nothing was changed."
            )
        names = sorted(store.namespaces())
    finally:
        store.close()
    for name in names:
        args.namespace = name
        with opened(args) as client:
            yield client


def named_store(args: Namespace, *, make: bool = False) -> Store:
    """Return the store of `--store`, of SOLOCRON_STORE or the default one, not opened.

    A missing file is refused, unless the purpose is to `make` one.
    """
    from solocron.stores.url import make_store, parse, url_of_environment
    from solocron.stores.weakness import nothing_at

    host = hosted()
    if host is not None and not args.store:
        return _store_of(host, args.namespace)
    named = None if args.store else url_of_environment()
    url = named or args.store or surroundings.DEFAULT_STORE
    parts = parse(url)
    store = make_store(url, namespace=args.namespace or surroundings.namespace())
    if parts.scheme == "sqlite" and not make:
        from solocron.stores.sql.sqlite.file import place_of

        path = place_of(parts).path
        # A link that leads nowhere is left to the store, which refuses links and says so.
        if not path.exists() and not path.is_symlink():
            source = "SOLOCRON_STORE" if surroundings.store_url() else "SOLOCRON_STORE_FILE"
            where = "" if args.store else " (the default)" if named is None else f" (from {source})"
            raise EmptyStore(nothing_at(f"{parts.masked}{where}", f"there is no file {path}"))
    return store
