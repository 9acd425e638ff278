"""What a client knows of a server's time without asking: enough to write from memory, if the server agrees."""

from __future__ import annotations

from solocron.clock import SECOND

__all__ = ["surely_reached"]


def surely_reached(told: int, passed: float) -> int:
    """A time that the server's clock has reached when so many seconds have passed since it told one.

    No clock runs slower than another by more than a thousandth.
    """
    return told + int(passed * SECOND * 0.999)
