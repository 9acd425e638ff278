"""What all servers have in common: a folder, a port, a process, and the ways in which each can be hurt."""

from __future__ import annotations

import os
import pwd
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tests.servers import janitor, processes
from tests.servers.seats import LOOPBACK, Seat


class ServerFailed(Exception):
    """A server did not start or stop; the message holds the end of its log."""


class Server(ABC):
    """One private instance. `url` stays the same over restarts; `shared` ones may outlive the test that began them."""

    name: ClassVar[str]
    hint: ClassVar[str]
    """What to do where the server is not installed."""
    account: ClassVar[str | None] = None
    """Whose rights the server gets when root runs the tests; None where the server does not mind root."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    """Shuts it down in order, as for a restart."""
    end_signal: ClassVar[signal.Signals] = signal.SIGKILL
    """End it at once; its data is not needed again."""
    ready_within: ClassVar[float] = 60.0
    """Seconds; a start takes well under one, but the machine may be busy."""
    running: ClassVar[set[Server]] = set()
    seat: Seat = LOOPBACK
    """Where it runs: its addresses, and what starts a program there."""

    def __init__(
        self, *, settings: Mapping[str, str] | None = None, shared: bool = False, disk: Path | None = None
    ) -> None:
        """`disk`: where to make its folder, instead of among the other temporary files."""
        self.settings = dict(settings or {})
        self.shared = shared
        self._disk = disk
        self.port = 0
        self.folder = Path()
        self._process: subprocess.Popen[bytes] | None = None

    # What a server must tell of itself.

    @classmethod
    @abstractmethod
    def binary(cls) -> Path | None:
        """Where the server's program is, or None."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The store URL of an empty database that belongs to the tests."""

    @abstractmethod
    def fresh_url(self) -> str:
        """The store URL of another database, just created and empty."""

    @abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments: folder, port, loopback, settings."""

    @abstractmethod
    def ask(self) -> None:
        """Connect and ask something; raise if there is no answer."""

    def prepare(self) -> None:  # noqa: B027 - a server that fills its folder itself needs nothing here
        """Fill the empty folder before the first start."""

    def forget(self) -> None:  # noqa: B027 - most servers keep nothing elsewhere
        """Remove what it has left outside its folder; it does not run any more."""

    def version(self) -> str:
        """What it calls itself."""
        said = subprocess.run([str(self.binary()), "--version"], capture_output=True, text=True, check=False).stdout
        number = re.search(r"\d+\.\d+(\.\d+)?", said)
        return number[0] if number else said.strip()

    # Its life.

    @property
    def pid(self) -> int | None:
        """The server's first process, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> Self:
        """Start, and return when it answers. A port that someone else took in the meantime is replaced."""
        if self.pid is not None:
            raise ServerFailed(f"{self.name} is running already")
        if self.port:
            self._launch()
            return self
        self.folder = self._make_folder()
        try:
            self.prepare()
            for attempt in range(3):
                self.port = free_port()
                try:
                    self._launch()
                    break
                except ServerFailed:
                    if attempt == 2 or is_free(self.port):
                        raise
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it at once and delete the folder; twice is harmless. The orderly end of a busy one takes long."""
        self._end(self.end_signal)
        self.forget()
        if self.folder != Path():
            shutil.rmtree(self.folder, ignore_errors=True)
            janitor.forget(self.folder)
            self.folder = Path()
            self.port = 0

    def restart(self, *, settings: Mapping[str, str] | None = None) -> None:
        """Shut it down, unless it is dead already, and start it again on the same data; new settings are added."""
        self._end(self.stop_signal)
        self.settings |= settings or {}
        self.start()

    def kill9(self) -> None:
        """As if the machine's power went, except that the disk's cache survives."""
        if self._process is None:
            return
        pids = processes.tree(self._process.pid)
        processes.send(signal.SIGKILL, pids)
        self._process.wait()
        processes.wait_gone(pids)
        self._forget_process()

    def freeze(self) -> None:
        """Stop every process of it in the middle of whatever it does; connections stay open and silent."""
        assert self.pid is not None, f"{self.name} is not running"
        frozen: list[int] = []
        while fresh := [pid for pid in processes.tree(self.pid) if pid not in frozen]:
            # The parent first, so that it starts no more children; those it just started are found next time.
            processes.send(signal.SIGSTOP, fresh)
            frozen += fresh

    def thaw(self) -> None:
        """Let it go on."""
        if self.pid is not None:
            processes.send(signal.SIGCONT, processes.tree(self.pid))

    def log(self) -> str:
        """What the server has printed so far."""
        file = self.folder / "server.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # Helpers of the subclasses.

    def run(self, command: list[str]) -> None:
        """Run a program of the server's to its end, with the server's rights."""
        owner = self._owner()
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            user=owner and owner.pw_uid,
            group=owner and owner.pw_gid,
            extra_groups=[] if owner else None,
        )
        if done.returncode != 0:
            raise ServerFailed(f"{command[0]} failed:\n{done.stdout}{done.stderr}")

    def _owner(self) -> pwd.struct_passwd | None:
        """Root hands over to the server's own account; anyone else stays who they are."""
        return pwd.getpwnam(self.account) if self.account and os.geteuid() == 0 else None

    def _make_folder(self) -> Path:
        owner = self._owner()
        bases = [self._disk] if self._disk else [Path(tempfile.gettempdir()), Path("/var/tmp")]
        base = next(base for base in bases if owner is None or _open_to_all(base))
        folder = Path(tempfile.mkdtemp(prefix=f"solocron-{self.name}-", dir=base))
        if owner:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        return folder

    def _launch(self) -> None:
        owner = self._owner()
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self.seat.prefix, *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                user=owner and owner.pw_uid,
                group=owner and owner.pw_gid,
                extra_groups=[] if owner else None,
                start_new_session=True,  # Ctrl-C is for the tests; the fixtures end the server
            )
        janitor.watch(self._process.pid, self.folder)
        Server.running.add(self)
        try:
            self._wait_ready(self._process)
        except BaseException:
            self.kill9()
            raise

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + self.ready_within * max(1.0, os.getloadavg()[0] / 4)
        while True:
            try:
                self.ask()
                return
            except Exception as error:  # any error of any driver means "not yet"
                if process.poll() is not None or time.monotonic() > until:
                    raise ServerFailed(f"{self.name} did not start: {error}\n{self.log()[-3000:]}") from error
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            if how is signal.SIGKILL:
                self.kill9()
                return
            self.thaw()
            self._process.send_signal(how)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill9()
        self._forget_process()

    def _forget_process(self) -> None:
        self._process = None
        Server.running.discard(self)


def free_port() -> int:
    """Return a port without a listener, below those that the kernel gives to outgoing connections.

    Else a client that keeps calling while the server is down may be given that very port, and meet itself.
    """
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        lowest = 32768
    while True:
        port = random.randrange(max(1024, lowest - 16384), lowest)
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _open_to_all(folder: Path) -> bool:
    """Whether another user can reach into it: a 0700 home on the way would stop them."""
    return all(step.stat().st_mode & stat.S_IXOTH for step in (folder, *folder.resolve().parents))
