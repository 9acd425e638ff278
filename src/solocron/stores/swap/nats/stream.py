"""One namespace's stream: its connection, its settings, and the consumer that feeds the mirror."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from solocron.clock import to_us
from solocron.errors import StoreError, StoreRefused, StoreUnavailable
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.mirror import Mirror
from solocron.stores.swap.nats.address import NatsAddress
from solocron.stores.swap.nats.checks import ask_synced
from solocron.stores.swap.nats.connection import NatsConnection, NatsMessage, Outgoing
from solocron.stores.swap.server_time import ServerTime, time_of

__all__ = ["DELETED", "NatsStream", "WrongSequence"]

DELETED = "Solocron-Deleted"
_OLDEST = (2, 12)
_NOT_FOUND = 404
_WRONG_SEQUENCE = (10071, 10164)
_FULL = (10023, 10047, 10077, 10122)


class WrongSequence(Exception):
    """A check of a commit did not hold: nothing was written."""


class NatsStream:
    """The stream of one client. Every call makes sure that the connection stands and the mirror is fed."""

    def __init__(self, address: NatsAddress, namespace: str) -> None:
        self.address = address
        self.name = f"{address.prefix}_{namespace.replace('.', '~')}"
        self.time: ServerTime = time_of(("nats", tuple(sorted(address.hosts))))
        self.lost = ""
        """What the server has lost of what it had acknowledged."""
        self.begin()

    def begin(self) -> None:
        """Begin anew, as after a fork."""
        self._process = os.getpid()
        self._mutex = threading.RLock()
        self._connection: NatsConnection | None = None
        self.mirror = Mirror()
        self.server = ""
        self._there = False
        """Whether the stream exists and is followed: a client that only looks makes none."""
        self.config: Mapping[str, Any] | None = None
        self.synced: bool | None = None
        """Whether every server syncs each write; None if they do not tell."""
        self._expected = 0
        self._target = 0

    @property
    def url(self) -> str:
        return self.address.parts.masked

    def subject(self, key: str) -> str:
        """Return the subject of a key: one word, whatever the key holds."""
        return f"{self.name}.k.{base64.urlsafe_b64encode(key.encode()).decode().rstrip('=')}"

    # --- connection and settings

    def connection(self, *, make: bool = False) -> NatsConnection:
        """Return the connection, made anew if it broke, with the mirror fed by it; `make` a stream that is missing."""
        if self._process != os.getpid():
            self.begin()
        with self._mutex:
            if self._connection is None or self._connection.broken.is_set():
                self._connection = None
                connection = self._connect()
                try:
                    self._prepare(connection)
                except BaseException:
                    connection.close()
                    raise
                self._connection = connection
            if not self._there:
                self._find(self._connection, make=make)
            return self._connection

    def _connect(self) -> NatsConnection:
        error: StoreUnavailable | None = None
        for _ in self.address.hosts:
            try:
                return NatsConnection(self.address)
            except StoreUnavailable as away:
                error = error or away
        assert error is not None
        raise error

    def _prepare(self, connection: NatsConnection) -> None:
        version = str(connection.info.get("version", ""))
        if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST:
            raise StoreRefused(
                f"{self.url} is NATS {version}, which has no atomic batches; nothing was written. Upgrade it to 2.12."
            )
        if not connection.info.get("jetstream"):
            raise StoreRefused(f"{self.url} runs without JetStream; nothing was written. Start it with jetstream {{}}.")
        if self.synced is None:
            self.synced = ask_synced(self.address)
        self._there = False

    def _find(self, connection: NatsConnection, *, make: bool) -> None:
        """Follow the stream if it is there, or is to be made."""
        try:
            last = self._state(connection)
        except _Missing:
            if self.mirror.applied:
                self.lost = f"the stream is gone, of which {self.mirror.applied} messages had been seen"
                self.mirror = Mirror()
            if not make:
                return
            more = {"allow_atomic": True, "allow_direct": True, "allow_msg_ttl": True}
            self._create(connection, self.name, [f"{self.name}.>"], more)
            last = self._state(connection)
        self.server = self._identity(connection)
        if last < self.mirror.applied:
            self.lost = f"the stream has gone back from message {self.mirror.applied} to {last}"
            self.mirror = Mirror()
        self._follow(connection, last)
        self._there = True

    def _identity(self, connection: NatsConnection) -> str:
        """Return the word that names this server and its copies, kept in a stream of its own."""
        name = f"{self.address.prefix}_"
        subject = f"{name}.identity"
        try:
            self.api(f"STREAM.INFO.{name}", {}, connection)
        except _Missing:
            self._create(connection, name, [subject], {})
        try:
            wanted = {"Nats-Expected-Last-Subject-Sequence": "0"}
            self.publish([Outgoing(subject, secrets.token_hex(8).encode(), wanted)], connection)
        except WrongSequence:
            pass  # it has one
        except Lost as error:
            raise StoreUnavailable(f"{self.url} did not reply: {error}; nothing was written.") from None
        found = self.api(f"STREAM.MSG.GET.{name}", {"last_by_subj": subject}, connection)
        return f"nats.{base64.b64decode(found['message']['data']).decode()}"

    def _create(self, connection: NatsConnection, name: str, subjects: Sequence[str], more: Mapping[str, Any]) -> None:
        several = len(connection.info.get("connect_urls", ())) > 1
        wanted = {
            "name": name, "subjects": list(subjects), "retention": "limits", "storage": "file", "discard": "old",
            "max_msgs_per_subject": 1, "num_replicas": self.address.replicas or (3 if several else 1), **more,
        }  # fmt: skip
        self.api(f"STREAM.CREATE.{name}", wanted, connection)

    def _state(self, connection: NatsConnection) -> int:
        """Return the last number of the stream; refuse one that is not ours."""
        info = self.api(f"STREAM.INFO.{self.name}", {}, connection)
        if not info["config"].get("allow_atomic") or info["config"].get("max_msgs_per_subject") != 1:
            raise StoreRefused(
                f"{self.url}: the stream {self.name} is not one of Solocron's (allow_atomic, one message per subject); "
                "nothing was written. Take another path in the URL."
            )
        self.config = info["config"]
        return int(info["state"]["last_seq"])

    def _follow(self, connection: NatsConnection, last: int) -> None:
        """Feed the mirror with everything after what it has."""
        inbox = connection.new_inbox()
        self._expected, self._target = 1, last
        mirror = self.mirror
        connection.subscribe(inbox, lambda message: self._apply(connection, mirror, message))
        config: dict[str, Any] = {
            "deliver_subject": inbox, "ack_policy": "none", "replay_policy": "instant", "mem_storage": True,
            "num_replicas": 1, "inactive_threshold": 60_000_000_000, "deliver_policy": "by_start_sequence",
            "opt_start_seq": mirror.applied + 1,
        }  # fmt: skip
        made = self.api(f"CONSUMER.CREATE.{self.name}", {"stream_name": self.name, "config": config}, connection)
        if not int(made.get("num_pending", 0)) and not int(made["delivered"]["consumer_seq"]):
            mirror.reach(last)

    def _apply(self, connection: NatsConnection, mirror: Mirror, message: NatsMessage) -> None:
        """Put one message into the mirror; on the thread that reads."""
        words = message.reply.split(".")
        if len(words) < 9 or words[1] != "ACK":
            return
        place = 5 if len(words) == 9 else 7
        number, order, pending = int(words[place]), int(words[place + 1]), int(words[place + 3])
        if order != self._expected:
            connection.close()  # a message is missing: the next call begins the mirror where it stands
            return
        self._expected += 1
        kind, _, word = message.subject.removeprefix(f"{self.name}.").partition(".")
        if kind == "n":
            mirror.notify(message.data.decode(errors="replace"), number)
        elif kind == "k":
            key = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode(errors="replace")
            deleted = DELETED in message.headers or "Nats-Marker-Reason" in message.headers
            if deleted:
                mirror.delete(key, number, compared=True)
            else:
                mirror.put(key, message.data.decode(errors="replace"), number)
        # With nothing pending, what is missing up to the beginning of this consumer is not there any more.
        mirror.reach(max(number, self._target) if pending == 0 else number)

    def close(self) -> None:
        if self._process != os.getpid():
            self.begin()
        with self._mutex:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # --- calls

    def api(self, what: str, body: Mapping[str, Any], connection: NatsConnection | None = None) -> dict[str, Any]:
        """Make a call of JetStream's API that may be repeated."""
        sent = self.time.begin_call()
        link = connection or self.connection()
        try:
            reply = link.request([Outgoing(f"$JS.API.{what}", json.dumps(body).encode())], self.address.timeout)
        except (Lost, StoreUnavailable) as error:
            if connection is None and link.broken.is_set():
                return self.api(what, body, self.connection())
            if isinstance(error, StoreUnavailable):
                raise
            raise StoreUnavailable(f"{self.url} did not reply: {error}; nothing was written.") from None
        found = self._understood(reply)
        if isinstance(found.get("ts"), str):
            now = _instant(found["ts"])
            self.time.told(now, now, sent)
        return found

    @property
    def is_there(self) -> bool:
        """Return whether any client has made the stream."""
        self.connection()
        return self._there

    def publish(self, messages: Sequence[Outgoing], connection: NatsConnection | None = None) -> int:
        """Publish one message, or a batch that is stored whole or not at all; return the number of the last."""
        link = connection or self.connection(make=True)
        return int(self._understood(link.request(messages, self.address.timeout))["seq"])

    def barrier(self) -> None:
        """Bring the mirror to where the stream is now."""
        for last_try in (False, True):
            self.connection()
            if not self._there:
                return  # no client has written yet
            try:
                info = self.api(f"STREAM.INFO.{self.name}", {})
            except _Missing:
                self.close()  # the next call notices what is gone
                raise StoreUnavailable(f"{self.url}: the stream {self.name} is gone; nothing was written.") from None
            if self.mirror.wait_for(int(info["state"]["last_seq"]), self.address.timeout):
                return
            if not last_try:
                self.close()  # the consumer is gone, or what it waits for is
        raise StoreUnavailable(f"{self.url} sends no changes; nothing was written. It is worth trying again.")

    def _understood(self, reply: NatsMessage) -> dict[str, Any]:
        """Return the reply; what is raised otherwise means that nothing was written."""
        if reply.status.startswith("503"):
            raise StoreUnavailable(f"{self.url}: no server replies for JetStream at the moment; nothing was written.")
        found = json.loads(reply.data) if reply.data else {}
        error = found.get("error")
        if error is None:
            return found if isinstance(found, dict) else {}
        code, text = int(error.get("err_code", 0)), str(error.get("description", ""))
        if code in _WRONG_SEQUENCE:
            raise WrongSequence(text)
        if error.get("code") == _NOT_FOUND:
            raise _Missing(text)
        if error.get("code") == 503 and code not in _FULL:
            raise StoreUnavailable(f"{self.url} cannot serve this at the moment: {text}; nothing was written.")
        if code in _FULL:
            raise StoreRefused(f"{self.url} is full: {text}; nothing was written. Give JetStream more room.")
        raise StoreRefused(f"{self.url} refused a call: {text} ({code}); nothing was written.")

    def exists(self, key: str) -> bool:
        """Ask the server itself whether a subject has a message, also one that marks a deletion."""
        try:
            self.api(f"STREAM.MSG.GET.{self.name}", {"last_by_subj": self.subject(key)})
        except _Missing:
            return False
        return True


class _Missing(StoreError):
    """There is no such stream or message."""


def _instant(text: str) -> int:
    """Return microseconds of a time with nanoseconds, which `fromisoformat` does not read."""
    whole, _, part = text.rstrip("Z").partition(".")
    return to_us(datetime.fromisoformat(whole).replace(tzinfo=UTC)) + int(part[:6].ljust(6, "0") or 0)
