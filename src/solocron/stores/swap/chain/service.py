"""The common part of the objects of every service; each service adds its calls and the meaning of its replies."""

from __future__ import annotations

from solocron.clock import MILLISECOND
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.chain.http import HttpAddress, HttpLink, encryption_checks

__all__ = ["STAND_IN", "ServiceObjects"]

STAND_IN = "the suites have run on a stand-in of Solocron's own only"


class ServiceObjects:
    """One client of a folder of objects, over HTTP."""

    tier = Tier.C
    why = STAND_IN

    def __init__(self, http: HttpAddress) -> None:
        self.link = HttpLink(http, lambda: self.get("identity"))

    @property
    def url(self) -> str:
        return self.link.url

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(tier=self.tier, why=self.why, notifies=True, clock_within=self.link.time.width)

    def open(self) -> None:
        """Ask for an object: a folder that is not there, a missing right or a wrong secret is told now."""
        self.get("identity")

    def close(self) -> None:
        self.link.close()

    def get(self, name: str) -> bytes | None:
        raise NotImplementedError

    def now(self) -> int:
        return self.link.now()

    def sharpen(self, within: int) -> None:
        self.link.sharpen(within)

    def _shared_checks(self, teller: str = "the service", *, throttled: str = "") -> list[Check]:
        """Return the lines of `doctor` on time, load and encryption; `throttled` is the remedy for a busy service."""
        told = f"known to {self.link.time.width / MILLISECOND:.0f} ms; {teller} tells whole seconds"
        found = [Check("time", "OK", f"{told}, and a node asks when they turn; a takeover may take a second longer")]
        if throttled and self.link.busy:
            told = f"{self.link.busy} calls of this process met a busy service"
            found.append(Check("throttled", "WARN", told, throttled))
        return [*found, *encryption_checks(self.link.address)]
