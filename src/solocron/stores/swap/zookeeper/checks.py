"""Facts behind `doctor` and the tier on ZooKeeper: version, members, rights, size."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.address import check_encryption

if TYPE_CHECKING:
    from solocron.stores.swap.zookeeper.tree import ZooTree

__all__ = ["CAPABILITIES", "checks_of"]

CAPABILITIES = Capabilities(
    tier=Tier.A,
    why="ZooKeeper replies after a majority has synced the commit to disk, and no decision rests on a read",
    notifies=True,
    clock_within=2_000,
)
_MANY = 200_000
"""Keys that a mirror should not exceed: every client keeps them in memory."""


def checks_of(tree: ZooTree) -> Iterator[Check]:
    """Yield the lines of `doctor`."""
    told = _server(tree)
    version = re.search(r"version: ([\w.]+)", told)
    mode = re.search(r"Mode: (\w+)", told)
    detail = f"ZooKeeper {version[1]}, {mode[1] if mode else 'mode unknown'}" if version else "cannot be asked (srvr)"
    yield Check("server", "OK", f"{detail}: {CAPABILITIES.why}")
    members = len(re.findall(r"^server\.", tree.read("/zookeeper/config") or "", re.MULTILINE))
    if members or (mode and mode[1] == "standalone"):
        alone = members < 3
        detail = f"{members} of the ensemble" if not alone else "one that dies takes the store away"
        yield Check("members", "WARN" if alone else "OK", detail, "run three members" if alone else None)
    if not tree.private:
        remedy = "give the nodes a user: zookeeper://user:password@..., see the page on ZooKeeper"
        yield Check("rights", "WARN", "every client of this ZooKeeper may read and delete the nodes", remedy)
    keys = len(tree.mirror.items)
    many = keys > _MANY
    yield Check(
        "size",
        "WARN" if many else "OK",
        f"{keys} keys; every client keeps them in memory",
        "keep less history (keep=)" if many else None,
    )
    yield from check_encryption(tree.address, "zookeepers")


def _server(tree: ZooTree) -> str:
    """Return what the member tells of itself by its one-word command `srvr`; empty where that is switched off."""
    address = tree.address
    host = tree.connection().host
    try:
        with socket.create_connection(host, timeout=address.timeout) as plain:
            link = plain if address.tls is None else address.tls.wrap_socket(plain, server_hostname=host[0])
            with link:
                link.sendall(b"srvr")
                told = b""
                while data := link.recv(4_096):
                    told += data
    except OSError:
        return ""
    return told.decode(errors="replace")
