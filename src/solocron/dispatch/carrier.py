"""Carriers: what takes a run to another process. A message is a ticket for one attempt, and good once.

The message is believed only in what it names: namespace, job, run and attempt. Handler, payload and options are read
from the job's document when it is picked up, so a forged message runs nothing of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from solocron.clock import SECOND, iso
from solocron.errors import InvalidError
from solocron.model.documents.definition import TARGET
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import key_of

__all__ = [
    *("FOREIGN_REMEDY", "Carriage", "Carrier", "Forward", "Forwards", "Message", "NotAccepted"),
    *("check_options", "foreign", "make_message", "message_id", "short_name"),
]

LOOK_LIMIT = 300
"""Characters of what a carrier says of a message that does not start."""
FOREIGN_REMEDY = "give each namespace a queue of its own, or name the carrier of its scheduler in this program too"
"""What to do about messages of a namespace that a worker does not serve."""
_NAMED = ("namespace", "job", "run", "attempt")


class NotAccepted(Exception):
    """A carrier refused a message, which is certainly not in its queue; whatever else `publish` raises is in doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a carrier takes to another process."""

    id: str
    """Equal for every copy of a message, also one that is published again; new for each attempt."""
    namespace: str
    job: str
    run: str
    attempt: int
    key: str
    """The idempotency key of the run."""
    slot: str
    fence: int
    """The fence of the hand-over: the token of a forwarded message. A body that is picked up has a higher one."""
    target: str | None = None
    """What a forwarded message is for, such as the name of a task; None if the job has a function here."""
    payload: Any = None
    """For a carrier that forwards; a worker that picks the run up reads the payload from the store."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The `hand_over` options of the job."""
    trace: str | None = None
    """A W3C `traceparent`: of the publication where there is tracing, else of the request that the run came from."""
    timeout: float | None = None
    """Seconds that the body may take, for a carrier that makes a place for the run; so the next two."""
    memory: int | None = None
    cpu: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The facts as headers, for carriers that have them."""
        facts = {"namespace": self.namespace, "job": self.job, "run": self.run, "attempt": self.attempt}
        facts |= {"key": self.key, "slot": self.slot, "fence": self.fence}
        headers = {f"solocron-{name}": str(value) for name, value in facts.items()}
        return headers if self.trace is None else headers | {"traceparent": self.trace}

    def to_json(self) -> dict[str, Any]:
        """Return what a worker needs, as plain JSON."""
        return {
            "id": self.id, "namespace": self.namespace, "job": self.job, "run": self.run, "attempt": self.attempt,
            "key": self.key, "slot": self.slot, "fence": self.fence,
            **({} if self.trace is None else {"traceparent": self.trace}),
        }  # fmt: skip

    @classmethod
    def read(cls, value: Message | Mapping[str, Any] | str | bytes) -> Message:
        """Return the message that arrived: the object, its JSON, or the text of that."""
        if isinstance(value, Message):
            return value
        try:
            found = json.loads(value) if isinstance(value, str | bytes) else value
            names = {name: found[name] for name in _NAMED}
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidError(f"this is not a message of Solocron ({error!r:.100}); nothing was run.") from None
        texts = all(isinstance(names[name], str) for name in _NAMED[:3])
        if not texts or not isinstance(names["attempt"], int):
            raise InvalidError("this is not a message of Solocron: a name in it is not a text; nothing was run.")
        rest = {name: found.get(name, "") for name in ("id", "key", "slot")}
        trace = found.get("traceparent")
        return cls(**names, **rest, fence=found.get("fence", 0), trace=trace if isinstance(trace, str) else None)


class Carrier(Protocol):
    """Takes messages to other processes. `follows`: a Solocron on the other side picks them up.

    Six more methods are used where they exist: `attach(namespace, scheduler)` when the carrier is named, so that it
    can put a task where workers find it, `check(options)` to refuse bad `hand_over` options at the start, `close()` to
    release connections, `forward(message)`, by which a carrier that follows sends what a job names as its target,
    `look(id)` to say why a message has not started, and `withdraw(id)` to take one out of the queue, at best.
    One that sets `keeps_limits` makes a place for each run and keeps to the job's `memory` and `cpu`.
    """

    @property
    def follows(self) -> bool: ...

    def publish(self, message: Message) -> None:
        """Put the message into the queue; return when that is certain. Called from several threads.

        `NotAccepted`: it is not there, try again. `InvalidError`: it never can be, so the run has failed.
        """
        ...


@runtime_checkable
class Forwards(Protocol):
    """A carrier whose messages may also name a target on the other side, where there is no Solocron."""

    def forward(self, message: Message) -> object: ...


@runtime_checkable
class _Closes(Protocol):
    def close(self) -> object: ...


class Forward:
    """A plain function of the message as a carrier."""

    def __init__(self, function: Callable[[Message], object], *, follows: bool) -> None:
        self._function = function
        self.follows = follows

    def publish(self, message: Message) -> None:
        self._function(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carriage:
    """A carrier under the name that `run_in` uses, and how long its workers have for a pick-up."""

    name: str
    carrier: Carrier
    pickup: int
    """Microseconds for which an offer stands before its message is published again."""

    @property
    def follows(self) -> bool:
        return self.carrier.follows

    def publish(self, message: Message) -> None:
        """Publish the message of an attempt, or send what it names."""
        if message.target is not None and isinstance(self.carrier, Forwards):
            self.carrier.forward(message)
        else:
            self.carrier.publish(message)

    def look(self, id: str) -> str | None:
        """Return why a message has not started, if the carrier knows; what it cannot tell is left out."""
        return _at_best(self.carrier, "look", id)

    def withdraw(self, id: str) -> None:
        """Take a message out of the queue, if the carrier can. It would start nothing anyway."""
        _at_best(self.carrier, "withdraw", id)

    def close(self) -> None:
        if isinstance(self.carrier, _Closes):
            self.carrier.close()


def _at_best(carrier: Carrier, method: str, id: str) -> str | None:
    """Call a method that a carrier may have. It is a help, so its failure is not the run's."""
    found = getattr(carrier, method, None)
    if found is None:
        return None
    try:
        said = found(id)
    except Exception:  # noqa: BLE001 - a broker that is away cannot tell, and is asked again with the next message
        return None
    return said[:LOOK_LIMIT] if isinstance(said, str) and said else None


def foreign(namespace: object, served: Iterable[str]) -> str:
    """Return why a worker drops a message of a namespace that it does not serve."""
    return f"it is for the namespace {namespace!r:.80}, and this worker serves {', '.join(sorted(served))}"


def check_options(
    options: Iterable[str], known: Iterable[str], carrier: str, undone: str = "Nothing was started."
) -> None:
    """Refuse `hand_over` options that a carrier does not know."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InvalidError(
            f"hand_over={{{unknown[0]!r}: ...}} is not an option of {carrier}; known are {', '.join(sorted(known))}. "
            f"{undone}"
        )


def message_id(namespace: str, job: str, run: str, attempt: int) -> str:
    """Return the id of every copy of the message of an attempt: a DNS label, and short enough for any queue."""
    digest = hashlib.blake2b(f"{namespace}|{run}|{attempt}".encode(), digest_size=10).hexdigest()
    short = short_name(job)
    return f"solocron-{short}-{digest}" if short else f"solocron-{digest}"


def short_name(job: str, most: int = 32) -> str:
    """Return a job's name as a part of a DNS label; empty if no letter of it may stand there."""
    return re.sub(r"[^a-z0-9]+", "-", job.lower()).strip("-")[:most].strip("-")


def make_message(job: Job, hold: Hold, *, namespace: str, follows: bool) -> Message:
    """Return the message of a hand-over; one that is followed carries no payload."""
    payload = job.definition.payload if hold.payload is None else hold.payload
    return Message(
        id=message_id(namespace, job.name, hold.run, hold.attempt),
        namespace=namespace,
        job=job.name,
        run=hold.run,
        attempt=hold.attempt,
        key=key_of(job.name, hold.origin, hold.slot, hold.request, hold.shard),
        slot=iso(hold.slot),
        fence=hold.fence,
        payload=None if follows else payload,
        target=job.definition.target,
        trace=hold.trace,
        timeout=None if job.definition.timeout is None else job.definition.timeout / SECOND,
        memory=job.definition.memory,
        cpu=job.definition.cpu,
        options={name: value for name, value in (job.definition.hand_over or {}).items() if name != TARGET},
    )
