"""An offer: one attempt of a run on its way to a worker, through a queue that may lose, double or delay its message."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["NOT_ACCEPTED", "Offer"]


NOT_ACCEPTED = "not accepted by "
"""Beginning of the note of an offer whose message the carrier has certainly not taken; its name follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The hand-over of one attempt to a carrier. A message is good for its run and attempt, whenever it arrives.

    It says nothing of a fence: a message that is published again has the same id, and brokers that refuse a known id
    would keep the first one, whose fence were stale.
    """

    carrier: str
    since: int
    """Time of the first hand-over of this attempt."""
    tries: int = 1
    """Number of hand-overs of this attempt, those under way and failed ones included."""
    until: int | None = None
    """Time until which a pick-up is awaited; None while it is being handed over, or waits for that."""
    follows: bool = True
    """True if a worker picks it up; False if the carrier's acceptance is the end of the run."""
    note: str | None = None
    """Reason why the last hand-over did not lead to a pick-up, if one is known."""

    @property
    def refused(self) -> bool:
        """True if its message is certainly not in the queue, and waits to be published again."""
        return self.until is None and (self.note or "").startswith(NOT_ACCEPTED)

    @property
    def stands(self) -> bool:
        """True while its message is awaited: then it counts as running."""
        return self.until is not None

    @property
    def lapsed(self) -> bool:
        """True for a hand-over after one that no worker picked up, as far as is known."""
        return self.tries > 1 and self.note is None

    def once_more(self) -> Offer:
        """Return the offer as the next hand-over of the same attempt begins it; one that stood has lapsed."""
        return replace(self, tries=self.tries + 1, until=None, note=None if self.stands else self.note)
