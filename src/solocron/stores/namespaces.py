"""What a store says of the namespaces in it, where it can: for people who look after it, never for nodes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, runtime_checkable

__all__ = ["ManyNamespaces"]


@runtime_checkable
class ManyNamespaces(Protocol):
    """A store that can list the namespaces beside its own."""

    def namespaces(self) -> Collection[str]:
        """The namespaces that hold anything, in no order; makes none."""
        ...
