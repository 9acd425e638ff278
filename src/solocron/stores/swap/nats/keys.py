"""NATS as a key store: marks are numbers of the stream, a commit is a batch with an expected number for each check."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence

from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.key_store import ABSENT, EXISTS, Condition, KeyLimits, Stale, Swapped
from solocron.stores.swap.layout import NOTIFY, is_derived
from solocron.stores.swap.mirrored import MirroredKeys
from solocron.stores.swap.nats.address import NatsAddress
from solocron.stores.swap.nats.checks import capabilities_of, checks_of
from solocron.stores.swap.nats.connection import Outgoing
from solocron.stores.swap.nats.stream import DELETED, NatsStream, WrongSequence

__all__ = ["NatsKeys"]

_LIMITS = KeyLimits(keys=480, bytes=8_000_000, value=900_000)
"""A batch has at most a thousand messages, one a megabyte; a check without a write may need a message of its own."""
_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_OF_SUBJECT = f"{_EXPECTED}-Subject"
_MARKER_KEPT = "1h"
"""How long the server keeps the mark of a deletion."""
_NOTIFICATION_KEPT = "60s"
_TRIES = 8
"""How often a commit is sent again that only met a change of a key which it does not compare."""


class NatsKeys(MirroredKeys):
    """One client of a namespace of keys."""

    limits = _LIMITS

    def __init__(self, address: NatsAddress, namespace: str) -> None:
        self._address = address
        self._stream = NatsStream(address, namespace)
        super().__init__(self._stream)

    @property
    def capabilities(self) -> Capabilities:
        config = self._stream.config
        if config is None:
            return Capabilities(tier=Tier.C, why="not opened yet, so nothing is known of it", notifies=True)
        return capabilities_of(config, synced=self._stream.synced)

    # --- writing

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        stream = self._stream
        connection = stream.connection(make=True)
        if server is not None and stream.server != server:
            return Stale(frozenset(), moved=True)
        writes = {key: value for key, value in writes.items() if not is_derived(key)}
        if not writes and not checks:
            return self._seen({}, look, also)
        for _ in range(_TRIES):
            expected = {key: self._number(key, condition) for key, condition in checks.items()}
            if None not in expected.values():
                messages, places = self._batch(expected, writes)
                try:
                    last = stream.publish(messages, connection)
                except WrongSequence:
                    self._forget_expired(checks)
                else:
                    first = last - len(messages) + 1
                    return self._seen({key: first + place for key, place in places.items()}, look, also)
            if stale := self._stale(checks):
                return Stale(stale)
        return Stale()

    def _number(self, key: str, condition: Condition) -> int | None:
        """Return the number that the server must have for a key, from the mirror; None if the check does not hold."""
        mirror = self._stream.mirror
        item = mirror.items.get(key)
        if condition is ABSENT:
            return mirror.gone.get(key, 0) if item is None else None
        if condition is EXISTS:
            return None if item is None else item.mark  # type: ignore[return-value]
        # The very mark is sent: the server decides, unless the mirror knows a later one already.
        newer = item is None and key in mirror.gone and mirror.gone[key] > condition  # type: ignore[operator]
        newer = newer or (item is not None and item.mark > condition)  # type: ignore[operator]
        return None if newer else condition  # type: ignore[return-value]

    def _batch(
        self, expected: Mapping[str, int | None], writes: Mapping[str, str | None]
    ) -> tuple[list[Outgoing], dict[str, int]]:
        """Return the messages of a commit, and the place of each written key among them."""
        stream = self._stream
        messages: list[Outgoing] = []
        places: dict[str, int] = {}
        free: list[int] = []
        for key, value in writes.items():
            headers: dict[str, str] = {}
            subject = stream.subject(key)
            if key in expected:
                headers[_EXPECTED] = str(expected[key])
            else:
                free.append(len(messages))
            if key == NOTIFY:  # a subject of its own, so that none takes the place of another before it is heard
                subject = f"{stream.name}.n.{secrets.token_hex(8)}"
                headers["Nats-TTL"] = _NOTIFICATION_KEPT
            if value is None:
                headers |= {DELETED: "1", "Nats-TTL": _MARKER_KEPT}
            else:
                places[key] = len(messages)
            messages.append(Outgoing(subject, (value or "").encode(), headers))
        for key in expected.keys() - writes.keys():
            check = {_EXPECTED: str(expected[key]), _OF_SUBJECT: stream.subject(key)}
            if free:
                place = free.pop()
                messages[place] = messages[place]._replace(headers={**messages[place].headers, **check})
            else:
                carrier = f"{stream.name}.c.{secrets.token_hex(8)}"
                messages.append(Outgoing(carrier, b"", check | {"Nats-TTL": "1s"}))
        if len(messages) > 1:
            batch = secrets.token_hex(12)
            messages = [
                one._replace(headers={**one.headers, "Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(i)})
                for i, one in enumerate(messages, 1)
            ]
            messages[-1] = messages[-1]._replace(headers={**messages[-1].headers, "Nats-Batch-Commit": "1"})
        return messages, places

    def _forget_expired(self, checks: Mapping[str, Condition]) -> None:
        """Drop marks of deletions that the server has dropped: it compares with nothing there from now on."""
        mirror = self._stream.mirror
        for key, condition in checks.items():
            if condition is ABSENT and key in mirror.gone and not self._stream.exists(key):
                mirror.forget_deletion(key)

    # --- time, notifications, looking after

    def ask_time(self) -> str:
        self._stream.connection(make=True)
        self._stream.api(f"STREAM.INFO.{self._stream.name}", {})
        return self._stream.server

    def position(self) -> int:
        self._stream.connection(make=True)  # a client that listens needs a stream, also before anything is written
        self._stream.barrier()
        return self._stream.mirror.applied

    def wait(self, after: int, timeout: float) -> tuple[int, Sequence[str | None]]:
        connection = self._stream.connection(make=True)
        return self._stream.mirror.news(after, timeout, lambda: self._closed or connection.broken.is_set())

    def checks(self) -> Sequence[Check]:
        return list(checks_of(self._stream))

    def namespaces(self) -> Collection[str]:
        names = self._stream.api("STREAM.NAMES", {}).get("streams") or ()
        prefix = f"{self._address.prefix}_"
        found = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        return [name.replace("~", ".") for name in found if name]
