"""Runs scripts by name: known by their digest, sent whole where the server has forgotten them, and counted.

A commit is recognisable. The server keeps its answer under the connection's name and the request's number; when the
reply is lost, a new connection asks for that answer. A request that the server has not seen by then is called off in
the same step, so "not seen" cannot turn into "applied" later.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from solocron.errors import StoreError
from solocron.stores.redis.link import Moved, RedisLink, ReplyLost, ScriptUnknown, Wire
from solocron.stores.redis.scripts import Script, script
from solocron.stores.redis.wire import Words, pack

__all__ = ["VOID", "Caller"]

VOID = "void"
"""The answer of a request that did nothing and never will."""
_CALLED_OFF_FOR = 3_600_000
_FOLLOWED = 5


class Caller:
    """The scripts of one namespace on one link."""

    def __init__(self, link: RedisLink, prefix: str, *, lease: float) -> None:
        self.link = link
        self.prefix = prefix
        # A channel is the server's, whichever database was chosen; each database counts notifications of its own.
        self.channel = self.key(f"changed:{link.address.database}")
        self.statements: Counter[str] = Counter()
        self._counting = (os.getpid(), threading.Lock())
        # Asked for within a third of the lease, or never.
        self._remembered_for = str(int(3 * lease * 1000))

    def key(self, name: str) -> str:
        """The key of this name in the namespace."""
        return f"{self.prefix}:{name}"

    def count(self, name: str) -> None:
        process, mutex = self._counting
        if process != os.getpid():  # a fork may have copied it in another thread's hand
            mutex = threading.Lock()
            self._counting = (os.getpid(), mutex)
        with mutex:
            self.statements[name] += 1

    def command(self, *words: str) -> Any:
        """Send a plain command that may be repeated: nothing, or a little work, is done twice."""
        return self._harmless(words[0].lower(), lambda wire: self.link.send(wire, pack(words)))

    def run(self, name: str, words: Sequence[str]) -> Any:
        """Run a script that may be repeated."""
        source = script(name)
        return self._harmless(name, lambda wire: self._eval(wire, source, words))

    def commit(self, words: Sequence[str], more: Sequence[Words] = ()) -> str | None:
        """The answer of `swap`; `VOID` if it certainly did nothing, None if that cannot be learnt."""
        source = script("swap")
        for followed in range(_FOLLOWED):
            wire = self.link.wire()
            wire.number += 1
            request = (wire.name, str(wire.number))
            self.count("swap")
            self.count("commit")
            try:
                reply = self._eval(wire, source, (*request, self._remembered_for, *words), more)
            except Moved:
                if followed == _FOLLOWED - 1:
                    raise
            except ReplyLost:
                return self._ask(request)
            else:
                return str(reply, "utf-8")
        raise AssertionError("the last round returns or raises")

    def _ask(self, request: tuple[str, str]) -> str | None:
        """Ask what became of a request whose reply was lost, for the time of one more call."""
        until = time.monotonic() + self.link.timeout
        pause = threading.Event()
        while True:
            try:
                return str(self.run("ask", (*request, str(_CALLED_OFF_FOR))), "utf-8")
            except StoreError:
                if time.monotonic() >= until:
                    return None
                pause.wait(min(0.05, self.link.timeout / 10))

    def _harmless(self, name: str, call: Callable[[Wire], Any]) -> Any:
        """Repeat once what a broken connection has swallowed: after a restart each idle connection breaks once."""
        lost = followed = 0
        while True:
            self.count(name)
            began = time.monotonic()
            try:
                return call(self.link.wire())
            except Moved:
                followed += 1
                if followed == _FOLLOWED:
                    raise
            except ReplyLost:
                lost += 1
                if lost > 1 or time.monotonic() - began > self.link.timeout / 2:
                    raise

    def _eval(self, wire: Wire, source: Script, words: Sequence[str], more: Sequence[Words] = ()) -> Any:
        try:
            return self.link.send(wire, pack(source.by_digest(self.prefix, self.channel, words), more))
        except ScriptUnknown:
            return self.link.send(self.link.wire(), pack(source.by_source(self.prefix, self.channel, words), more))
