"""The scripts, by name: each a file of Lua behind the lines that all of them share, called by its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["Script", "script"]


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the digest under which a server knows it once it has seen it."""

    name: str
    source: str
    digest: str

    def by_digest(self, prefix: str, words: Iterable[str]) -> list[str]:
        """The command that runs it where the server knows it."""
        return ["EVALSHA", self.digest, "1", prefix, *words]

    def by_source(self, prefix: str, words: Iterable[str]) -> list[str]:
        """The command that runs it anywhere, and makes it known."""
        return ["EVAL", self.source, "1", prefix, *words]


@cache
def script(name: str) -> Script:
    """The script of this name."""
    folder = resources.files("solocron.stores.redis") / "lua"
    source = "\n".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in ("common", name))
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())
