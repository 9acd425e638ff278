"""The ward of a run in a process of its own: its node has it, and the process asks its node.

Each question is a connection of its own, which the process makes and passes to the node. So threads of a body, and
processes that it has forked, ask at once and never read each other's answers.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict
from functools import partial
from typing import Any

from solocron.errors import LeaseLost
from solocron.model.change import Kind, SmallDocument
from solocron.model.transitions.giving_up import GivingUp
from solocron.stores.contract import Gate
from solocron.stores.ward import Ward

__all__ = ["Questions", "RemoteWard"]

_PIECE = 1 << 16


class Questions:
    """The node's side. It never waits: what a stopped process has half asked stays until the rest comes."""

    def __init__(self, ward: Ward) -> None:
        self._ward = ward
        self._ear, self.mouth = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ear.setblocking(False)
        self._heard: dict[socket.socket, bytearray] = {}

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is something to `accept`."""
        return self._ear.fileno()

    def accept(self) -> list[socket.socket]:
        """Return the connections of new questions; each is heard until that returns True, and then closed."""
        found: list[socket.socket] = []
        while True:
            try:
                _, descriptors, _, _ = socket.recv_fds(self._ear, 1, 1)
            except BlockingIOError:
                return found
            for each in descriptors:
                connection = socket.socket(fileno=each)
                connection.setblocking(False)
                self._heard[connection] = bytearray()
                found.append(connection)

    def hear(self, connection: socket.socket) -> bool:
        """Read what has arrived, and answer a question that is complete; True if nothing follows."""
        heard = self._heard[connection]
        try:
            while more := connection.recv(_PIECE):
                heard += more
                if heard.endswith(b"\n"):
                    connection.send(json.dumps(self._answer(json.loads(heard))).encode())
                    break
        except BlockingIOError:
            return False
        except ConnectionError:
            pass  # the process was killed: nothing waits for the answer
        del self._heard[connection]
        return True

    def close(self) -> None:
        """Hear what a process that was killed has still said, and close everything."""
        self.accept()
        for connection in list(self._heard):
            self.hear(connection)
            connection.close()
        self._ear.close()

    def _answer(self, asked: dict[str, Any]) -> Any:
        if asked["about"] == "gate":
            return asdict(self._ward.gate())
        kind, name = Kind(asked["kind"]), asked["name"]
        if asked["about"] == "wrote":
            doc, gate = asked["doc"], asked["gate"]
            note = None if doc is None else SmallDocument(kind=kind, name=name, **doc)
            return self._ward.wrote(kind, name, note, None if gate is None else _gate(gate))
        change = GivingUp(kind, name, asked["token"], asked["uncertain"])
        (self._ward.giving_up if asked["about"] == "giving up" else self._ward.gave_up)(change)
        return None


class RemoteWard:
    """The side of the process in which the body runs."""

    def __init__(self, mouth: socket.socket) -> None:
        self._mouth = mouth

    def gate(self) -> Gate:
        return _gate(self._ask({"about": "gate"}))

    def wrote(self, kind: Kind, name: str, doc: object, gate: Gate | None) -> bool:
        """Return when the node has it: from then on it is put back, whatever becomes of this process."""
        packed = None
        if isinstance(doc, SmallDocument):
            packed = {"body": dict(doc.body), "session": doc.session, "expires_at": doc.expires_at}
        tested = None if gate is None else asdict(gate)
        return bool(self._ask({"about": "wrote", "kind": kind, "name": name, "doc": packed, "gate": tested}))

    def giving_up(self, change: GivingUp) -> None:
        self._ask({"about": "giving up", **asdict(change)})

    def gave_up(self, change: GivingUp) -> None:
        self._ask({"about": "gave up", **asdict(change)})

    def _ask(self, question: dict[str, Any]) -> Any:
        here, there = socket.socketpair()
        answer = b""
        with here:
            try:
                with there:
                    socket.send_fds(self._mouth, [b"?"], [there.fileno()])
                here.sendall(json.dumps(question).encode() + b"\n")
                answer = b"".join(iter(partial(here.recv, _PIECE), b""))
            except ConnectionError:
                pass
        if not answer:
            raise LeaseLost("the node of this run does not answer any more; stop: what is written now may be lost.")
        return json.loads(answer)


def _gate(told: dict[str, Any]) -> Gate:
    return Gate(told["beats"], tuple(told["words"]), told["pauses"])
