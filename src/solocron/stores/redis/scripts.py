"""The scripts, by name: each a file of Lua behind the lines that all of them share, called by its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from solocron.packaged import packaged_text

__all__ = ["Script", "script"]


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the digest under which a server knows it once it has seen it."""

    name: str
    source: str
    digest: str

    def by_digest(self, prefix: str, channel: str, words: Iterable[str]) -> list[str]:
        """The command that runs it where the server knows it."""
        return ["EVALSHA", self.digest, "2", prefix, channel, *words]

    def by_source(self, prefix: str, channel: str, words: Iterable[str]) -> list[str]:
        """The command that runs it anywhere, and makes it known."""
        return ["EVAL", self.source, "2", prefix, channel, *words]


@cache
def script(name: str) -> Script:
    """The script of this name."""
    source = "\n".join(packaged_text("solocron.stores.redis", "lua", f"{part}.lua") for part in ("common", name))
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())
