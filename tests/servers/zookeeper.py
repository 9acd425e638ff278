"""A private ZooKeeper of one member, from Debian's package and a Java runtime."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
from pathlib import Path

from tests.servers.base import Server

_JARS = Path("/usr/share/java")
_NAMES = (
    *("zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "metrics-core", "snappy-java", "commons-cli"),
    *(f"netty-{part}" for part in ("buffer", "codec", "common", "handler", "resolver", "transport")),
)
PASSWORD = "c4n4ry-p4ss"


class ZooKeeper(Server):
    """Syncs every commit, as ZooKeeper always does; `settings` are lines of its file. Knows the SASL user `canary`."""

    name = "zookeeper"
    hint = "apt-get install zookeeper default-jre-headless"

    _numbers = itertools.count(1)

    @classmethod
    def binary(cls) -> Path | None:
        java = shutil.which("java")
        return Path(java) if java and (_JARS / "zookeeper.jar").exists() else None

    @property
    def url(self) -> str:
        return f"zookeeper://{self.seat.host}:{self.port}/solocron"

    def fresh_url(self) -> str:
        """A folder that no test has used."""
        return f"zookeeper://{self.seat.host}:{self.port}/p{os.getpid()}-{next(self._numbers)}"

    def command(self) -> list[str]:
        lines = {
            "dataDir": f"{self.folder}/data",
            "clientPort": str(self.port),
            "clientPortAddress": self.seat.host,
            "tickTime": "500",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            **self.settings,
        }
        (self.folder / "zoo.cfg").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        module = "org.apache.zookeeper.server.auth.DigestLoginModule"
        (self.folder / "users").write_text(f'Server {{ {module} required user_canary="{PASSWORD}"; }};')
        return [
            *("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
            f"-Djava.security.auth.login.config={self.folder}/users",
            *("-cp", ":".join(str(_JARS / f"{name}.jar") for name in _NAMES)),
            *("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.folder / "zoo.cfg")),
        ]

    def ask(self) -> None:
        assert "Mode: " in self.told()

    def version(self) -> str:
        number = re.search(r"version: (\d+\.\d+\.\d+)", self.told())
        assert number is not None
        return number[1]

    def told(self) -> str:
        """What it tells of itself; whether it leads, among other things."""
        with socket.create_connection((self.seat.host, self.port), timeout=5) as sock:
            sock.sendall(b"srvr")
            told = b""
            while data := sock.recv(4_096):
                told += data
            return told.decode()
