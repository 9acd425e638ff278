"""A private RabbitMQ, with an `epmd` of its own that ends with it. It is a broker, and no store."""

from __future__ import annotations

import itertools
import socket
import subprocess
from pathlib import Path

from tests.servers import janitor
from tests.servers.base import Server, free_port

PROGRAMS = Path("/usr/lib/rabbitmq/lib")
EPMD = Path("/usr/bin/epmd")


class RabbitMQ(Server):
    """One broker with the user `guest`; a fresh URL is another queue prefix, because hosts would need its tools."""

    name = "rabbitmq"
    hint = "apt-get install rabbitmq-server"
    account = "rabbitmq"
    ready_within = 240.0  # 8 s of processor time, which took two minutes on a machine with other work

    _numbers = itertools.count(1)
    _epmd: subprocess.Popen[bytes] | None = None
    _epmd_port = 0

    @classmethod
    def binary(cls) -> Path | None:
        found = sorted(PROGRAMS.glob("rabbitmq_server-*/sbin/rabbitmq-server"))
        return found[-1] if found and EPMD.exists() else None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def fresh_url(self) -> str:
        """The same broker: tests give their queues names of their own."""
        return self.url

    def prepare(self) -> None:
        """Start the port mapper in the foreground, so that it can be ended by its process."""
        self._epmd_port = free_port()
        owner = self._owner()
        self._epmd = subprocess.Popen(
            [str(EPMD), "-port", str(self._epmd_port), "-address", "127.0.0.1"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            user=owner and owner.pw_uid,
            group=owner and owner.pw_gid,
            extra_groups=[] if owner else None,
            start_new_session=True,
        )
        janitor.watch(self._epmd.pid, self.folder / "epmd")

    def forget(self) -> None:
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()
            self._epmd = None
            janitor.forget(self.folder / "epmd")

    def command(self) -> list[str]:
        program = self.binary()
        assert program is not None, self.hint
        lines = {
            "listeners.tcp.1": f"127.0.0.1:{self.port}",
            "vm_memory_high_watermark.absolute": "256MB",
            "disk_free_limit.absolute": "1MB",
            "log.console": "true",
            "log.console.level": "warning",
            "log.file": "false",
            **self.settings,
        }
        config = self.folder / "rabbitmq.conf"
        config.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
        config.chmod(0o644)
        surroundings = {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"solocron{self.port}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.port + 1),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none",
        }
        return ["/usr/bin/env", *(f"{name}={value}" for name, value in surroundings.items()), str(program)]

    def ask(self) -> None:
        """Begin the protocol: the broker answers once it accepts logins."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as sock:
            sock.sendall(b"AMQP\x00\x00\x09\x01")
            assert sock.recv(8)[:1] == b"\x01"
