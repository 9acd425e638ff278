"""Where a server runs: on the loopback interface, or in a network of its own that can be cut from the others.

A namespace of the kernel is a machine as far as the network is concerned. Each has two wires: one to its clients, one
to the other members of its cluster, so that a member can be cut off from its peers while clients still reach it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

__all__ = ["LOOPBACK", "Seat", "Wires"]


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of one server."""

    host: str
    """Address for its clients."""
    peer: str
    """Address for other members of its cluster."""
    prefix: tuple[str, ...] = ()
    """The command that starts a program there."""


LOOPBACK = Seat("127.0.0.1", "127.0.0.1")


class Wires:
    """Some namespaces on two bridges. They need root, and end with the block."""

    def __init__(self, seats: int = 3) -> None:
        self._name = f"sc{os.getpid()}"
        self._net = f"10.{20 + os.getpid() % 200}"
        self._stack = ExitStack()
        self.seats = [
            Seat(f"{self._net}.1.{n}", f"{self._net}.2.{n}", ("ip", "netns", "exec", self._space(n)))
            for n in range(2, 2 + seats)
        ]

    @staticmethod
    def missing() -> str | None:
        """What to do where no namespace can be made."""
        if shutil.which("ip") is None:
            return "apt-get install iproute2"
        return None if os.geteuid() == 0 else "run it as root: it makes networks"

    def _space(self, number: int) -> str:
        return f"{self._name}n{number}"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for wire, net in (("c", 1), ("p", 2)):
                bridge = f"{self._name}{wire}"
                _ip("link", "add", bridge, "type", "bridge")
                stack.callback(_ip, "link", "del", bridge)
                _ip("addr", "add", f"{self._net}.{net}.1/24", "dev", bridge)
                _ip("link", "set", bridge, "up")
            for number, seat in enumerate(self.seats, 2):
                space = self._space(number)
                _ip("netns", "add", space)
                stack.callback(_ip, "netns", "del", space)
                _ip("-n", space, "link", "set", "lo", "up")
                for wire, address in (("c", seat.host), ("p", seat.peer)):
                    near, far = f"{self._name}{wire}{number}", f"{wire}0"
                    _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", space)
                    _ip("link", "set", near, "master", f"{self._name}{wire}", "up")
                    _ip("-n", space, "addr", "add", f"{address}/24", "dev", far)
                    _ip("-n", space, "link", "set", far, "up")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def cut(self, seat: Seat, *, clients: bool) -> None:
        """Cut a seat off from its peers, and with `clients` from everything.

        Members that talk to each other by the addresses of their clients are cut there by a route that leads nowhere.
        """
        self._set(seat, "p", "down")
        self._route(seat, "replace")
        if clients:
            self._set(seat, "c", "down")

    def mend(self, seat: Seat) -> None:
        for wire in "pc":
            self._set(seat, wire, "up")
        self._route(seat, "del")

    def _route(self, seat: Seat, verb: str) -> None:
        space = self._space(self.seats.index(seat) + 2)
        for other in self.seats:
            if other != seat:
                _ip("-n", space, "route", verb, "blackhole", f"{other.host}/32")

    def _set(self, seat: Seat, wire: str, state: str) -> None:
        _ip("link", "set", f"{self._name}{wire}{self.seats.index(seat) + 2}", state)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
