"""What a store says of itself when it is opened: that it is set up too weakly, or that nothing is there."""

from __future__ import annotations

import logging

from solocron.stores.contract import Capabilities, Tier

__all__ = ["nothing_at", "warn_of"]

log = logging.getLogger("solocron")

LEFT = {
    Tier.B: "it may forget its last commits in a crash",
    Tier.C: "it promises nothing",
}


def nothing_at(where: str, what: str) -> str:
    """Return the sentence for an empty place: most often it is not the one that was meant."""
    return (
        f"nothing of Solocron's is at {where}: {what}. Nothing was made. Name the store and the namespace that the "
        "nodes use (--store, --namespace, SOLOCRON_STORE), or start the first node: solocron run TARGET."
    )


def warn_of(url: str, found: Capabilities) -> None:
    """Log one line about a weak store; a store of tier A has nothing to say."""
    if found.tier in LEFT:
        log.warning(
            "%s is a store of tier %s, %s: %s. `solocron doctor` says what to change.",
            url,
            found.tier,
            LEFT[found.tier],
            found.why,
            extra={"event": "weak store", "store": url, "tier": found.tier},
        )
