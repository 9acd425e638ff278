"""Finds the namespaces of a server, or of every node of a cluster, by their keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from solocron.stores.redis.link import RedisLink
from solocron.stores.stock import Stock
from solocron.stores.url import StoreUrl

__all__ = ["namespaces_of"]

_OPEN, _CLOSE = "{solocron:", "}:"
_MARKS = ("layout", "notifications")
"""Keys that a client leaves who only looks: they make no namespace."""
_AT_ONCE = "1000"


def namespaces_of(parts: StoreUrl, *, timeout: float) -> frozenset[str]:
    """Return every namespace with a key beyond the marks: scan all keys of the database, a thousand at a time."""
    with _linked(parts, timeout) as link:
        places = [parts]
        if link.address.cluster:
            slots = link.call(("CLUSTER", "SLOTS"))
            primaries = {(primary[0].decode(), int(primary[1])) for _, _, primary, *_ in slots}
            places = [replace(parts, hosts=_written(host, port)) for host, port in sorted(primaries)]
    found: set[str] = set()
    for place in places:
        with _linked(place, timeout) as link:
            found.update(_names(link))
    return frozenset(found)


def _names(link: RedisLink) -> Iterator[str]:
    cursor = "0"
    while True:
        reply, keys = link.call(("SCAN", cursor, "MATCH", f"{_OPEN}*{_CLOSE}*", "COUNT", _AT_ONCE))
        for key in keys:
            name, _, rest = key.decode(errors="replace").removeprefix(_OPEN).partition(_CLOSE)
            if rest not in _MARKS:
                yield name
        cursor = reply.decode()
        if cursor == "0":
            return


@contextmanager
def _linked(parts: StoreUrl, timeout: float) -> Iterator[RedisLink]:
    link = RedisLink(parts, timeout=timeout, stock=Stock(keep=1))
    try:
        yield link
    finally:
        link.close()


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
