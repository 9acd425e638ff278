"""The static files, read once: their content and type by name, and one hash of all of them for their addresses."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

__all__ = ["StaticFile", "static_files", "static_hash"]

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Types of the files that are served; others, such as licences and lists, stay in the package."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is sent."""

    content: bytes
    media_type: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return every file that is served, by its name below `static/`."""
    return dict(sorted(_below(resources.files("solocron.service") / "static", "")))


@cache
def static_hash() -> str:
    """Return the part of an address that changes when any file changes, so that a browser may keep them forever."""
    digest = hashlib.sha256()
    for name, file in static_files().items():
        digest.update(f"{name} {len(file.content)}\n".encode())
        digest.update(file.content)
    return digest.hexdigest()[:16]


def _sent(file: Traversable) -> bytes:
    """Return a file as it is sent: a style sheet without its comments, which are for those who change it."""
    content = file.read_bytes()
    return re.sub(rb"/\*.*?\*/\s*", b"", content, flags=re.DOTALL) if file.name.endswith(".css") else content


def _below(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found = []
    for one in folder.iterdir():
        kind = _TYPES.get(one.name.rpartition(".")[2])
        if one.is_dir():
            found += _below(one, f"{prefix}{one.name}/")
        elif kind is not None:
            found.append((prefix + one.name, StaticFile(_sent(one), kind)))
    return found
