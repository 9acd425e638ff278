"""What `doctor` shows of every key store."""

from __future__ import annotations

import time
from collections.abc import Iterator

from solocron.stores.contract import Check
from solocron.stores.swap.calls import KeyCalls
from solocron.stores.swap.key_store import Span
from solocron.stores.swap.parcels import PARCELS

__all__ = ["common_checks"]

_SLOW = 0.25
"""Seconds of a round trip that are too many: a claim takes three."""


def common_checks(calls: KeyCalls) -> Iterator[Check]:
    """Yield what is looked at on all of them."""
    began = time.perf_counter()
    calls.fetch(())
    took = time.perf_counter() - began
    slow = took > _SLOW
    remedy = "move the nodes near the store" if slow else None
    yield Check("round trip", "WARN" if slow else "OK", f"{took * 1_000:.1f} ms", remedy)
    (page,) = calls.fetch((), (Span.below(PARCELS, limit=1_000, bare=True),)).pages
    if page:
        remedy = "start a node, or let its next pruning unpack them; readers see the records already"
        yield Check("parcels", "WARN", f"{len(page)} packed records of a client that died are not unpacked yet", remedy)
