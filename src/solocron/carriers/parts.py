"""Parts that the carriers share: the task that messages arrive at, payloads as arguments, a broker's certain no."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from solocron.carriers.broker_return import BrokerReturn
from solocron.dispatch.carrier import FOREIGN_REMEDY, Message, NotAccepted, foreign
from solocron.errors import InvalidError, MissingExtra
from solocron.telemetry.log import LINE

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["GivenUp", "Probe", "SharedTask", "UnknownTargets", "keyword_arguments", "missing", "read_message"]

log = logging.getLogger("solocron")


class Probe:
    """Tells a broker that is away from one whose answer was lost.

    The broker is asked before the first message, and after a trouble: one that cannot be reached has taken nothing.
    `look` asks from another thread, and leaves nothing open there.
    """

    def __init__(self, ask: Callable[[], object], look: Callable[[], object] | None = None) -> None:
        self._ask = ask
        self._reached = False
        self.back = BrokerReturn(look or ask)

    @contextmanager
    def sending(self, message: Message) -> Iterator[None]:
        """Send a message inside; raises `NotAccepted` if the broker cannot be reached."""
        if not self._reached:
            try:
                self._ask()
            except Exception as error:
                self.back.not_connected(message)
                raise NotAccepted(f"no connection to the broker: {error}") from error
        self._reached = False
        yield
        self._reached = True


class UnknownTargets:
    """Tells once of each target of forwarded messages that the workers of a queue give up."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._told: set[str] = set()

    def tell(self, target: str, said: str) -> None:
        """Log a warning; a run that was forwarded is over, so nothing else shows it."""
        if target in self._told:
            return
        self._told.add(target)
        remedy = "start a worker that has it, or correct the name"
        extra = {"event": "target given up", "target": target, "reason": said, "remedy": remedy}
        told = f"what is forwarded to {target!r:.200} is given up by {self._queue}: {said}; {remedy}"
        log.warning(LINE, told, f"target={target:.200}", extra=extra)


class GivenUp:
    """Looks back, with each message to a target, at what became of the last one.

    A queue whose workers cannot be asked what they know keeps the messages that they gave up.
    """

    def __init__(self, queue: str, look: Callable[[str], str | None]) -> None:
        self._unknown = UnknownTargets(queue)
        self._look = look
        self._last: dict[str, str] = {}

    def sending(self, target: str, id: str) -> None:
        """Take note of a message, and tell if the last one to its target was given up."""
        before, self._last[target] = self._last.get(target), id
        if before is None:
            return
        try:
            said = self._look(before)
        except Exception:  # noqa: BLE001 - a help: the message is sent whatever the queue knows of the last one
            return
        if said is not None:
            self._unknown.tell(target, said)


class SharedTask:
    """The schedulers whose runs arrive at one task, each with a namespace of its own."""

    def __init__(self, task: str) -> None:
        self._task = task
        self._schedulers: dict[str, Scheduler] = {}

    @classmethod
    def of(cls, owner: object, task: str, namespace: str, scheduler: Scheduler) -> SharedTask:
        """Return the one that an application or a broker carries, with the scheduler in it."""
        shared: SharedTask = vars(owner).setdefault("solocron_shared_task", cls(task))
        shared._schedulers[namespace] = scheduler
        return shared

    def carry_out(self, message: Any) -> None:
        """Carry out the run of a message that arrived, on the calling thread."""
        found = self._find(message)
        if found is not None:
            scheduler, ticket = found
            scheduler.carry_out(ticket)

    async def carry_out_async(self, message: Any) -> None:
        """Carry out the run of a message that arrived, on the running event loop."""
        found = self._find(message)
        if found is not None:
            scheduler, ticket = found
            await scheduler.aio.carry_out(ticket)

    def _find(self, message: Any) -> tuple[Scheduler, Message] | None:
        """Return the message and the scheduler that it is for; None, with a warning, if there is none here."""
        found = read_message(message, self._task)
        if found is None:
            return None
        scheduler = self._schedulers.get(found.namespace)
        if scheduler is None:
            facts = {"job": found.job, "run": found.run, "attempt": found.attempt}
            _warn(foreign(found.namespace, self._schedulers), FOREIGN_REMEDY, facts)
            return None
        return scheduler, found


def read_message(message: Any, task: str) -> Message | None:
    """Return the message that arrived at a task; None, with a warning, if it is none of Solocron's."""
    try:
        return Message.read(message)
    except InvalidError as error:
        _warn(str(error).removesuffix("."), f"look at what sends to {task}: only nodes should", {})
        return None


def _warn(reason: str, remedy: str, facts: dict[str, Any]) -> None:
    """Log a message that no scheduler of this process can tell of."""
    extra = {"event": "message dropped", "reason": reason, "remedy": remedy, **facts}
    shown = " ".join(f"{name}={str(value)[:300]}" for name, value in facts.items())
    told = f"a message was dropped: {reason}; {remedy}"
    log.warning(*((LINE, told, shown) if shown else ("%s", told)), extra=extra)


def keyword_arguments(message: Message) -> dict[str, Any]:
    """Return the payload of a forwarded message as the keyword arguments of its target."""
    payload = {} if message.payload is None else message.payload
    if not isinstance(payload, Mapping):
        raise InvalidError(
            f"the payload of a forwarded job is the keyword arguments of {message.target}, and {payload!r:.80} is not "
            "a mapping of names. Nothing was sent."
        )
    return dict(payload)


def missing(carrier: str, extra: str) -> MissingExtra:
    """Return the error for a queue whose library is not installed."""
    return MissingExtra(f'{carrier} needs {extra}, which is not installed: pip install "solocron[{extra}]"')
