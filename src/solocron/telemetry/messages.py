"""Messages about alarms (a webhook, apprise), and pings when a run starts and ends."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from solocron.clock import iso, to_us
from solocron.errors import InvalidError, MissingExtra
from solocron.events import Event
from solocron.stores.url import Secret
from solocron.telemetry.delivery import Deliveries
from solocron.telemetry.https import NotDelivered, Target

__all__ = ["Notify", "Pings", "Webhook", "signature"]


def signature(secret: str, at: int, body: bytes) -> str:
    """Return the header `Solocron-Signature`: the time, and the HMAC-SHA256 of time, dot and body."""
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


def _facts(event: Event, namespace: str) -> dict[str, Any]:
    facts = dict(event.facts)
    since = facts.pop("since")
    return {"event": event.name, "namespace": namespace, **facts, "since": iso(to_us(since))}


def _sentence(event: Event) -> str:
    what = "cleared: " if event.name == "alarm cleared" else ""
    return f"{what}{event.kind}: {event.subject}: {event.detail}"


class Webhook:
    """Posts alarms as JSON, signed."""

    def __init__(self, target: Target, secret: Secret, namespace: str, deliveries: Deliveries) -> None:
        self._target = target
        self._secret = secret
        self._namespace = namespace
        self._deliveries = deliveries

    def __call__(self, event: Event) -> None:
        id_ = uuid.uuid4().hex
        body = json.dumps({"id": id_, **_facts(event, self._namespace)}, ensure_ascii=False).encode()
        self._deliveries.add(f"webhook {event.kind}: {event.subject}", partial(self._send, body, id_))

    def _send(self, body: bytes, id_: str) -> None:
        headers = {
            "Content-Type": "application/json",
            "Solocron-Id": id_,  # the same for every try: receivers can drop repeats
            "Solocron-Signature": signature(self._secret.reveal(), int(time.time()), body),
        }
        self._target.post(body, headers)


class Notify:
    """Sends alarms through apprise, which supports mail, chats and pagers."""

    def __init__(self, urls: Sequence[str], deliveries: Deliveries) -> None:
        try:
            import apprise
        except ModuleNotFoundError:
            raise MissingExtra(
                "notify= needs the package 'apprise': pip install \"solocron[notify]\". Nothing was configured."
            ) from None
        self._apprise = apprise.Apprise()
        for number, url in enumerate(urls, 1):
            if not self._apprise.add(url):
                raise InvalidError(
                    f"notify: apprise does not understand URL {number} of {len(urls)}. Nothing was configured."
                )
        self._deliveries = deliveries

    def __call__(self, event: Event) -> None:
        title = "solocron alarm cleared" if event.name == "alarm cleared" else "solocron alarm"
        self._deliveries.add(
            f"notification {event.kind}: {event.subject}", partial(self._send, title, _sentence(event))
        )

    def _send(self, title: str, body: str) -> None:
        if not self._apprise.notify(title=title, body=body):
            raise NotDelivered("apprise could not deliver it", again=True)


class Pings:
    """Pings a service such as Healthchecks when a job starts, succeeds or fails; it alarms on silence."""

    def __init__(self, targets: Mapping[str, Target], deliveries: Deliveries) -> None:
        self._targets = targets
        self._deliveries = deliveries

    def __call__(self, event: Event) -> None:
        target = self._targets.get(event.job)
        if target is None:
            return
        below = "/start"
        if event.name == "finished":
            if event.outcome == "cancelled":
                return
            below = "" if event.outcome == "succeeded" else "/fail"
        self._deliveries.add(f"ping of {event.job}", partial(target.post, b"", {}, below=below))
