"""Rivals for the same document: in the middle of a change, all at once in threads, all at once in processes."""

from __future__ import annotations

import json
import os
import selectors
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Meanwhile", "processes", "race"]

T = TypeVar("T")

PATIENCE = 0.2
"""Seconds to wait inside a change for a rival: without locks it ends at once, with locks only after our commit."""
GIVE_UP = 60.0


class _Rival(Generic[T]):
    """An action in a thread of its own; `join` raises what it raised."""

    def __init__(self, action: Callable[[], T]) -> None:
        self._action = action
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="rival", daemon=True)
        self.done = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answers.append(self._action())
        except BaseException as error:  # noqa: BLE001 - handed to the test in `join`
            self._errors.append(error)
        self.done.set()

    def join(self) -> T:
        """Return its result, once it has ended."""
        assert self.done.wait(GIVE_UP), "a rival hangs"
        self._thread.join()
        for error in self._errors:
            raise error
        return self._answers[0]


class Meanwhile(_Rival[T]):
    """A rival's action while a change is being computed.

    Stores that hold no lock let it happen at once, in the middle; those that lock make it wait until the change is
    committed. A test states what must be true in both cases.
    """

    begun = False

    def begin(self) -> None:
        """Begin the action, from inside a change; a change that is computed again finds it begun."""
        if not self.begun:
            self.begun = True
            self.start()
            self.done.wait(PATIENCE)

    def join(self) -> T:
        assert self.begun, "the change was never computed"
        return super().join()


def race(bodies: Sequence[Callable[[], T]]) -> list[T]:
    """Run them all at once, each in a thread of its own; return their results in order."""
    line = threading.Barrier(len(bodies))

    def at_the_shot(body: Callable[[], T]) -> Callable[[], T]:
        def run() -> T:
            line.wait(GIVE_UP)
            return body()

        return run

    rivals = [_Rival(at_the_shot(body)) for body in bodies]
    for rival in rivals:
        rival.start()
    return [rival.join() for rival in rivals]


def processes(bodies: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run them all at once, each in a forked process; return their results (JSON) in order."""
    shot, fire = os.pipe()
    children = [_fork(body, shot, fire) for body in bodies]
    os.close(shot)
    os.close(fire)  # every child reads the end of the pipe: the starting shot
    answers: list[Any] = []
    for pid, reply in children:
        answer = _read_all(pid, reply)
        os.waitpid(pid, 0)
        answers.append(answer)
    for answer in answers:
        assert "raised" not in answer, answer["raised"]
    return [answer["answer"] for answer in answers]


def _fork(body: Callable[[], Any], shot: int, fire: int) -> tuple[int, int]:
    reply, told = os.pipe()
    with warnings.catch_warnings():
        # The child runs the body and leaves by _exit: it needs none of our other threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(told)
        return pid, reply
    try:
        os.close(fire)
        os.read(shot, 1)
        answer = {"answer": body()}
    except BaseException:  # noqa: BLE001 - told to the parent
        answer = {"raised": traceback.format_exc()}
    try:
        with os.fdopen(told, "w") as pipe:
            json.dump(answer, pipe)
    finally:
        os._exit(0)


def _read_all(pid: int, reply: int) -> Any:
    text = b""
    with selectors.DefaultSelector() as selector, os.fdopen(reply, "rb", buffering=0) as pipe:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(GIVE_UP):
            chunk = pipe.read(65536)
            if not chunk:
                break
            text += chunk
        else:
            os.kill(pid, signal.SIGKILL)
            return {"raised": f"process {pid} hangs"}
    return json.loads(text) if text else {"raised": f"process {pid} died without an answer"}
