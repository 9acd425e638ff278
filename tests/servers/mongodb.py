"""A private MongoDB, a replica set of one: a `mongod` on the PATH, else a Windows program from npm, in Wine."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.servers.base import Server
from tests.servers.fetched import folder_of
from tests.servers.seats import LOOPBACK

if TYPE_CHECKING:
    from pymongo import MongoClient

_WINE = Path("/usr/lib/wine/wine64")
_WINESERVER = Path("/usr/lib/wine/wineserver64")
_NOT_YET = 94
_WORLDS = 15
"""Worlds after which the program for Windows is started anew: in Wine it crashes after some hundred connections."""


class MongoDB(Server):
    """Journals every commit; `settings` are options of the program, those without a value empty."""

    name = "mongodb"
    ready_within = 180.0
    """Wine makes its folder at the first start."""
    hint = "put a `mongod` program on the PATH, or install wine64 and npm and run: python scripts/servers.py mongodb"

    _numbers = itertools.count(1)
    _worlds = 0

    @classmethod
    def binary(cls) -> Path | None:
        native = shutil.which("mongod")
        if native:
            return Path(native)
        program = folder_of("mongodb") / "mongodb-binaries" / "mongod.exe"
        return program if program.exists() and _WINE.exists() else None

    @property
    def _is_windows(self) -> bool:
        program = self.binary()
        return program is not None and program.suffix == ".exe"

    @property
    def url(self) -> str:
        return f"mongodb://{self.seat.host}:{self.port}/solocron?directConnection=true"

    def fresh_url(self) -> str:
        """A collection that no test has used. Direct, so that a proxy before it is not passed by."""
        self._worlds += 1
        if self._worlds % _WORLDS == 0 and self._is_windows:
            self.restart()
        return f"{self.url}&collection=p{os.getpid()}-{next(self._numbers)}"

    def prepare(self) -> None:
        (self.folder / "data").mkdir()
        (self.folder / "keyfile").write_text("solocron" * 8)
        if self._has_own_prefix:
            shared = folder_of("mongodb") / "prefix"
            if shared.exists():  # else Wine makes one, which takes half a minute
                shutil.copytree(shared, self._prefix, symlinks=True, copy_function=_link)

    def forget(self) -> None:
        if self._has_own_prefix and self.folder != Path():
            env = {**os.environ, "WINEPREFIX": str(self._prefix)}
            subprocess.run([str(_WINESERVER), "-k"], env=env, capture_output=True, check=False)

    @property
    def _has_own_prefix(self) -> bool:
        """Whether it has a Wine of its own: Wine's server opens the sockets, so it must live in the same network."""
        return self._is_windows and self.seat is not LOOPBACK

    @property
    def _prefix(self) -> Path:
        return self.folder / "prefix" if self._has_own_prefix else folder_of("mongodb") / "prefix"

    def command(self) -> list[str]:
        program = self.binary()
        assert program is not None, self.hint
        begin = [str(program)]
        if self._is_windows:
            begin = ["env", f"WINEPREFIX={self._prefix}", "WINEDEBUG=-all", str(_WINE), str(program)]
        options = {
            "dbpath": str(self.folder / "data"),
            "port": str(self.port),
            "bind_ip": self.seat.host,
            "replSet": "rs0",
            "wiredTigerCacheSizeGB": "0.25",
            "quiet": "",
            **self.settings,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value) if word and value is not None]
        return [*begin, *words, "--setParameter", "diagnosticDataCollectionEnabled=false"]

    def ask(self) -> None:
        from pymongo.errors import OperationFailure

        with self.client() as client:
            try:
                primary = client.admin.command("hello")["isWritablePrimary"]
                assert primary or client.admin.command("replSetGetStatus")
            except OperationFailure as error:
                if error.code != _NOT_YET:
                    raise
                client.admin.command("replSetInitiate", self.members())
                raise
            assert primary, "no primary yet"

    def version(self) -> str:
        """Ask the running server: a program for Windows cannot be started as it is."""
        with self.client() as client:
            return str(client.server_info()["version"])

    def members(self) -> dict[str, Any]:
        """Return the configuration of the replica set."""
        return {"_id": "rs0", "members": [{"_id": 0, "host": f"{self.seat.host}:{self.port}"}], "settings": _ELECTION}

    def client(self, url: str | None = None) -> MongoClient[Any]:
        from pymongo import MongoClient

        return MongoClient(
            url or f"mongodb://{self.seat.host}:{self.port}/?directConnection=true",
            serverSelectionTimeoutMS=1_000,
            connectTimeoutMS=2_000,
            socketTimeoutMS=20_000,
        )


def _link(source: str, target: str) -> None:
    """Share a file that Wine only reads, of which there are 700 MB; its registry is a copy."""
    if not source.endswith(".reg"):
        with suppress(OSError):  # another disk
            os.link(source, target)
            return
    shutil.copy2(source, target)


_ELECTION = {"electionTimeoutMillis": 2_000, "heartbeatIntervalMillis": 500}
