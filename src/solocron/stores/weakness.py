"""Says at the start, in the log, what a store that is set up too weakly may lose; `doctor` says what to change."""

from __future__ import annotations

import logging

from solocron.stores.contract import Capabilities, Tier

__all__ = ["warn_of"]

log = logging.getLogger("solocron")

LEFT = {
    Tier.B: "it may forget its last commits in a crash",
    Tier.C: "it promises nothing",
}


def warn_of(url: str, found: Capabilities) -> None:
    """One line for whoever reads the log; a store of tier A has nothing to say."""
    if found.tier in LEFT:
        log.warning(
            "%s is a store of tier %s, %s: %s. `solocron doctor` says what to change.",
            url,
            found.tier,
            LEFT[found.tier],
            found.why,
            extra={"event": "weak store", "store": url, "tier": found.tier},
        )
