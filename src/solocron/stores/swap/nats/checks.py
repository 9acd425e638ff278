"""What `doctor` and the tier are made of on NATS: version, copies, storage, size, and whether writes were lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.address import check_encryption

if TYPE_CHECKING:
    from solocron.stores.swap.nats.stream import NatsStream

__all__ = ["capabilities_of", "checks_of"]

_MANY = 200_000
"""Keys that a mirror should not exceed: every client keeps them in memory."""


def capabilities_of(config: Mapping[str, Any]) -> Capabilities:
    """Return the tier from the settings of the stream."""
    copies = int(config.get("num_replicas", 1))
    if config.get("storage") != "file":
        return Capabilities(tier=Tier.C, why="the stream is in memory only", notifies=True)
    if copies >= 3:
        why = f"{copies} copies; a majority that loses power at once loses what is not synced (sync_interval: always)"
        return Capabilities(tier=Tier.B, why=why, notifies=True)
    why = "one copy, and whether the server syncs it (sync_interval: always) cannot be seen from here"
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
    found = capabilities_of(info["config"])
    weak = found.tier is Tier.C
    remedy = "run three servers, and make the stream with ?replicas=3" if weak else None
    yield Check("server", "OK", f"NATS {connection.info.get('version')}")
    yield Check("stream", "WARN" if weak else "OK", f"{stream.name}: {found.why}", remedy)
    state = info["state"]
    keys, size = int(state.get("num_subjects", 0)), int(state.get("bytes", 0))
    many = keys > _MANY
    detail = f"{keys} keys, {size / 1e6:.1f} MB; every client keeps them in memory"
    yield Check("size", "WARN" if many else "OK", detail, "keep less history (keep=)" if many else None)
    yield from check_encryption(stream.address, "tls")
