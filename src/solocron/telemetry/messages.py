"""Messages about alarms (a webhook, apprise), and pings when a run starts and ends."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from solocron.errors import InvalidError, MissingExtra
from solocron.events import Event
from solocron.stores.url import Secret
from solocron.telemetry.delivery import Deliveries
from solocron.telemetry.https import NotDelivered, Target
from solocron.views import to_json

__all__ = ["Notify", "Pings", "Webhook", "signature"]


def signature(secret: str, at: int, body: bytes) -> str:
    """Return the header `Solocron-Signature`: the time, and the HMAC-SHA256 of time, dot and body."""
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


def _payload(event: Event, namespace: str) -> dict[str, Any]:
    return {"event": event.name, "namespace": namespace, **to_json(event.facts)}


class Webhook:
    """Posts alarms as JSON, signed."""

    def __init__(self, target: Target, secret: Secret, namespace: str, deliveries: Deliveries) -> None:
        self._target = target
        self._secret = secret
        self._namespace = namespace
        self._deliveries = deliveries

    def __call__(self, event: Event) -> None:
        body = json.dumps(_payload(event, self._namespace)).encode()
        self._deliveries.add(f"webhook {event.name}: {event.kind}", partial(self._send, body, event.id), alarm=event.id)

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
        self._targets = [apprise.Apprise() for _ in urls]
        for number, (target, url) in enumerate(zip(self._targets, urls, strict=True), 1):
            if not target.add(url):
                raise InvalidError(
                    f"notify: apprise does not understand URL {number} of {len(urls)}. Nothing was configured."
                )
        self._deliveries = deliveries

    def __call__(self, event: Event) -> None:
        title = "solocron alarm cleared" if event.name == "alarm cleared" else "solocron alarm"
        for target in self._targets:  # each for itself: one that fails does not make the others send twice
            what = f"notification {event.name}: {event.kind}"
            self._deliveries.add(what, partial(_notify, target, title, event.text), alarm=event.id)


def _notify(target: Any, title: str, body: str) -> None:
    if not target.notify(title=title, body=body):  # it does not say why, and may have run into a timeout
        raise NotDelivered("apprise could not deliver it", again=True, doubtful=True)


class Pings:
    """Pings a service such as Healthchecks when a run starts, succeeds or fails for good; it alarms on silence.

    A run is told once: its first attempt starts it, and the one after which none follows ends it. A run that is lost
    with its node is told as failed by the node that took it over.
    """

    def __init__(self, targets: Mapping[str, Target], deliveries: Deliveries) -> None:
        self._targets = targets
        self._deliveries = deliveries

    def __call__(self, event: Event) -> None:
        target = self._targets.get(event.job)
        if target is None:
            return
        for below in _pings(event):
            self._deliveries.add(f"ping of {event.job}", partial(target.post, b"", {}, below=below))


def _pings(event: Event) -> Sequence[str]:
    """Return what to add to the URL, once for each ping."""
    if event.name == "started":
        return ("/start",) if event.first else ()
    if event.name == "taken over":
        return ["/fail" for run in event.runs if run["final"]]
    if event.outcome in ("succeeded", "handed_over"):
        return ("",)
    return ("/fail",) if event.final and event.outcome != "cancelled" else ()
