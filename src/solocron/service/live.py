"""Server-sent events: a page learns that something has changed, and fetches itself again.

A stream has a position among the board's changes and no queue, so that a slow reader costs no memory. Streams end when
the server is told to stop, before it waits for its connections: it would otherwise wait for them forever.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from solocron.clock import iso
from solocron.jobs.checks import NAME
from solocron.service.board.changes import Position, told
from solocron.service.board.watcher import Watcher
from solocron.service.problems import ProblemError

__all__ = ["EVENTS", "FOREIGN", "TOPIC", "LiveTimes", "Streams", "Subscription", "polled", "read_topic"]

EVENTS = "text/event-stream; charset=utf-8"
_POLLED_EVERY = 5
"""Seconds after which a client asks again that cannot have a stream."""
_STREAMS = 200
_OF_ONE_CALLER = 6
_MOST_TOPICS = 50
_PLAIN_TOPICS = ("runs", "nodes", "alarms", "jobs", "audit", "accounting")
TOPIC = re.compile(rf"{'|'.join(_PLAIN_TOPICS)}|job:{NAME.pattern}")
_COMMENT = b":\n\n"

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTimes:
    """Seconds of a stream's life."""

    comment: float = 15.0
    """Between two comments, which show the client that the stream lives. The caller is identified again then."""
    pause: float = 0.5
    """Between two writes at least."""
    life: float = 900.0
    write: float = 10.0
    """For one write; a client that takes longer is dropped."""
    first_pass: float = 5.0
    """For the first pass of the watcher."""
    end: float = 0.1
    """For a stream to end by itself at a stop; then it is cut off."""


FOREIGN = LiveTimes(life=25.0)
"""In a server that is not ours: it may wait for open streams before it stops."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """Topics that a client has subscribed to, and the last position that it has read."""

    topics: frozenset[str]
    last: Position | None = None

    @classmethod
    def of(cls, topics: Sequence[str], last: str | None) -> Subscription:
        """Make one of the parameters and the header `Last-Event-ID`; an id that is not ours counts as too old."""
        wanted = frozenset(topics)
        if len(wanted) > _MOST_TOPICS:
            raise ProblemError(400, f"topics: at most {_MOST_TOPICS}. Nothing was read.", code="InvalidError")
        return cls(wanted, None if last is None else Position.parse(last) or Position("unknown", 0))


def read_topic(given: str) -> str:
    """Return a topic; raise ValueError for anything else."""
    if not TOPIC.fullmatch(given):
        raise ValueError(f"{', '.join(_PLAIN_TOPICS)} or job:NAME")
    return given


def polled(watcher: Watcher, wanted: Subscription) -> bytes:
    """Return what is new as a stream that ends at once and says when to ask again."""
    return b"retry: %d\n\n" % (_POLLED_EVERY * 1000) + _Listener(watcher, wanted).hello(every=_POLLED_EVERY)


class _Listener:
    """The position of one client, and what to write to it."""

    def __init__(self, watcher: Watcher, wanted: Subscription) -> None:
        self._watcher = watcher
        self._topics = wanted.topics
        self._last = wanted.last

    def hello(self, *, every: int | None = None) -> bytes:
        """Return the first event, and what is new since the client's last one."""
        watcher, news = self._watcher, b"" if self._last is None else self.news()
        self._last = self._last or watcher.changes.position
        now = None if watcher.now is None else iso(watcher.now)
        data = {"now": now, "answers": watcher.answers, "mark": str(self._last), "every_s": every}
        return _event("hello", data, self._last) + news

    def news(self) -> bytes:
        """Return what is new since the last event; empty if nothing of it is wanted."""
        assert self._last is not None
        changes, self._last = self._watcher.changes.since(self._last)
        if changes is None:
            return _event("gap", {}, self._last)
        found = told(changes, self._topics)
        return b"" if found is None else _event("changed", found, self._last)


@dataclass(frozen=True, slots=True, eq=False)
class _OpenStream:
    """An open stream: `changed` to look again, `over` when the client has left or the server stops."""

    task: asyncio.Task[Any]
    changed: asyncio.Event
    over: asyncio.Event

    def end(self) -> None:
        self.over.set()
        self.changed.set()


class Streams:
    """The open streams of this process. All of it happens on one event loop."""

    def __init__(self, watcher: Watcher, *, times: LiveTimes | None = None) -> None:
        self._watcher = watcher
        self._times = times or LiveTimes()
        self._clients: set[_OpenStream] = set()
        self._of: Counter[str] = Counter()
        self.stopping = False

    @property
    def count(self) -> int:
        """Number of open streams."""
        return len(self._clients)

    def wake(self) -> None:
        """Let every stream look whether it has something to tell."""
        for client in self._clients:
            client.changed.set()

    def end(self) -> None:
        """End every stream and refuse new ones; cut off those whose clients do not read."""
        self.stopping = True
        for client in self._clients:
            client.end()
        asyncio.get_running_loop().call_later(self._times.end, self._cut)

    def _cut(self) -> None:
        for client in self._clients:
            client.task.cancel()

    def check_room(self, who: str) -> None:
        """Refuse a caller for whom there is no further stream."""
        if self.stopping:
            raise ProblemError(503, "The server stops.", headers=[("Retry-After", "5")])
        if self.count >= _STREAMS or self._of[who] >= _OF_ONE_CALLER:
            raise ProblemError(429, "Too many streams are open. Ask again instead.", headers=[("Retry-After", "5")])

    async def serve(
        self,
        wanted: Subscription,
        *,
        who: str,
        is_known: Callable[[], Awaitable[bool]],
        start: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        """Tell a client of changes until it leaves, its login ends, its time is over, or the server stops."""
        task = asyncio.current_task()
        assert task is not None
        client = _OpenStream(task, asyncio.Event(), asyncio.Event())
        self._clients.add(client)
        self._of[who] += 1
        leaving = asyncio.create_task(_until_left(receive, client))
        try:
            await send(start)
            await self._tell(client, wanted, is_known, send)
            if not leaving.done():
                await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:
            if not self.stopping:
                raise
        except TimeoutError:
            pass  # the client does not read; it comes again with its last id
        finally:
            leaving.cancel()
            self._clients.discard(client)
            self._of[who] -= 1
            self._of += Counter()  # drops callers without a stream

    async def _tell(
        self, client: _OpenStream, wanted: Subscription, is_known: Callable[[], Awaitable[bool]], send: Send
    ) -> None:
        times, time, listener = self._times, asyncio.get_running_loop().time, _Listener(self._watcher, wanted)

        async def write(text: bytes) -> None:
            async with asyncio.timeout(times.write):
                await send({"type": "http.response.body", "body": text, "more_body": True})

        begun = spoke = time()
        if self._watcher.now is None:
            await _within(times.first_pass, client.changed)
        text = listener.hello()
        known = True
        while known and not client.over.is_set() and time() - begun < times.life:
            if text:
                await write(text)
                spoke = time()
                await _within(times.pause, client.over)
            if not await _within(min(spoke + times.comment, begun + times.life) - time(), client.changed):
                known, text = await is_known(), _COMMENT
                continue
            client.changed.clear()
            text = listener.news()
        if self.stopping or not known:
            await write(_event("bye", {}))


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for an event; return False if it did not come within the time."""
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def _until_left(receive: Receive, client: _OpenStream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    client.end()


def _event(name: str, data: dict[str, Any], id: Position | None = None) -> bytes:
    number = "" if id is None else f"id: {id}\n"
    return f"event: {name}\n{number}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
