"""Facts behind `doctor` and the tier on NATS: version, copies, storage, size, and whether writes were lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.address import check_encryption

if TYPE_CHECKING:
    from solocron.stores.swap.nats.address import NatsAddress
    from solocron.stores.swap.nats.stream import NatsStream

__all__ = ["ask_synced", "capabilities_of", "checks_of"]

_MANY = 200_000
"""Keys that a mirror should not exceed: every client keeps them in memory."""


def ask_synced(address: NatsAddress) -> bool | None:
    """Ask every server whether it syncs each write; None if one does not tell."""
    found = [_syncs(host, port, min(1.0, address.timeout)) for host, port in address.monitors]
    if False in found:
        return False
    return None if None in found or not found else True


def _syncs(host: str, port: int, timeout: float) -> bool | None:
    connection = HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("GET", "/varz")
        told = json.loads(connection.getresponse().read())
        return bool(told["jetstream"]["config"].get("sync_always"))
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()


def capabilities_of(config: Mapping[str, Any], *, synced: bool | None) -> Capabilities:
    """Return the tier from the settings of the stream; `synced`: what the servers tell of `sync_interval`."""
    copies = int(config.get("num_replicas", 1))
    if config.get("storage") != "file":
        return Capabilities(tier=Tier.C, why="the stream is in memory only", notifies=True)
    if copies < 3:
        why = "one copy: its server takes the store away when it is gone, and forgets what it had not synced"
        return Capabilities(tier=Tier.C, why=why, notifies=True)
    if synced:
        return Capabilities(tier=Tier.B, why=f"{copies} copies, each synced before the reply", notifies=True)
    told = "cannot be seen from here" if synced is None else "is not set on every server"
    why = (
        f"{copies} copies, and sync_interval: always {told}: servers that lose power at once forget their last minutes"
    )
    return Capabilities(tier=Tier.C, why=why, notifies=True)


def checks_of(stream: NatsStream) -> Iterator[Check]:
    """Yield the lines of `doctor`."""
    connection = stream.connection()
    if stream.lost:
        yield Check("kept writes", "FAIL", stream.lost, "run `solocron restored`, and set sync_interval: always")
    if not stream.is_there:
        yield Check("server", "OK", f"NATS {connection.info.get('version')}, without a stream {stream.name}")
        return
    info = stream.api(f"STREAM.INFO.{stream.name}", {})
    synced = ask_synced(stream.address)
    found = capabilities_of(info["config"], synced=synced)
    weak = found.tier is Tier.C
    yield Check("server", "OK", f"NATS {connection.info.get('version')}")
    remedy = _remedy(info["config"], synced) if weak else None
    yield Check("stream", "WARN" if weak else "OK", f"{stream.name}: {found.why}", remedy)
    state = info["state"]
    keys, size = int(state.get("num_subjects", 0)), int(state.get("bytes", 0))
    many = keys > _MANY
    detail = f"{keys} keys, {size / 1e6:.1f} MB; every client keeps them in memory"
    yield Check("size", "WARN" if many else "OK", detail, "keep less history (keep=)" if many else None)
    yield from check_encryption(stream.address, "tls")


def _remedy(config: Mapping[str, Any], synced: bool | None) -> str:
    if int(config.get("num_replicas", 1)) < 3:
        return "run three servers, and make the stream with ?replicas=3"
    if synced is None:
        return "let the servers be monitored (http: 8222) and write ?monitor=8222, so that it can be seen"
    return "set sync_interval: always in the jetstream block of every server"
