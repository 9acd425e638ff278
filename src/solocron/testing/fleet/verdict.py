"""A judge's findings: figures for programs, sentences for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["FleetVerdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetVerdict:
    """`slots` were due in the window: each ran `once`, `twice` or is `lost`. One outside of it may be twice too."""

    slots: int
    once: int
    twice: int
    """One attempt started twice, two runs for a slot, or two accepted results for it."""
    lost: int
    """No body ended it."""
    takeover_s: float | None
    """Longest time from a dead node's last renewal to the next start of a run that it had; None: no node died."""
    stale_refused: int
    """Ends of bodies whose run had been taken over; the store did not accept them."""
    stale_accepted: int
    """The same, but the store did."""
    early: int
    """Bodies that started before their instant by the store's clock."""
    unrecorded: int
    """Slots without a final record in the store's log."""
    kills: int
    freezes: int
    takeovers: tuple[float, ...]
    faults: tuple[str, ...]
    """One sentence for each slot that is not as it should be."""

    @property
    def clean(self) -> bool:
        return not (self.twice or self.lost or self.stale_accepted or self.early or self.unrecorded)

    def to_json(self) -> dict[str, Any]:
        out = asdict(self)
        out["takeovers"] = list(self.takeovers)
        out["faults"] = list(self.faults)
        return out

    def __str__(self) -> str:
        took = "no node died" if self.takeover_s is None else f"takeover at most {self.takeover_s:.2f} s"
        text = (
            f"{self.slots} slots: {self.once} once, {self.twice} twice, {self.lost} lost; {took}; "
            f"{self.stale_refused} stale results refused, {self.stale_accepted} accepted; "
            f"{self.early} early, {self.unrecorded} unrecorded; {self.kills} kills, {self.freezes} freezes"
        )
        return "\n  ".join([text, *self.faults])
