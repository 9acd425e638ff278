"""Threads for bodies: none waits for another's end, each is carried out once, and a machine without threads says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from solocron.dispatch.contract import Away
from solocron.dispatch.thread import ThreadDispatcher

PATIENCE = 30.0


@pytest.fixture
def dispatcher() -> Iterator[ThreadDispatcher]:
    made = ThreadDispatcher()
    yield made
    made.close()


class Ends:
    """Collects how calls end."""

    def __init__(self, expected: int) -> None:
        self.values: list[Any] = []
        self._left = threading.Semaphore(0)
        self._expected = expected

    def __call__(self, value: Any, error: BaseException | None) -> None:
        self.values.append(value if error is None else error)
        self._left.release()

    def wait(self) -> list[Any]:
        for _ in range(self._expected):
            assert self._left.acquire(timeout=PATIENCE), f"only {len(self.values)} of {self._expected} ended"
        return self.values


@dataclass(eq=False)
class Calling:
    """A call as the engine makes them."""

    function: Callable[[], Any]
    ends: Ends
    begins: bool
    name: str = "test"

    def begin(self) -> bool:
        return self.begins

    def body(self) -> Callable[[], Any]:
        return self.function

    def end(self, value: Any, error: BaseException | None) -> None:
        self.ends(value, error)

    def away(self) -> Away:
        raise AssertionError("a thread is not away")


def submit(dispatcher: ThreadDispatcher, body: Callable[[], Any], ends: Ends, *, begins: bool = True) -> None:
    dispatcher.submit(Calling(body, ends, begins))


def test_a_body_that_blocks_delays_nobody(dispatcher: ThreadDispatcher) -> None:
    """Twenty bodies that wait for each other only end if all of them have begun."""
    together, ends = threading.Barrier(20), Ends(20)
    for _ in range(20):
        submit(dispatcher, lambda: together.wait(PATIENCE), ends)
    assert sorted(ends.wait()) == list(range(20))


def test_every_call_of_a_burst_is_carried_out_once(dispatcher: ThreadDispatcher) -> None:
    ends = Ends(5_000)
    for number in range(5_000):
        submit(dispatcher, lambda number=number: number, ends)
    assert sorted(ends.wait()) == list(range(5_000))


def test_a_thread_that_waits_is_woken_for_a_later_call(dispatcher: ThreadDispatcher) -> None:
    names: list[str] = []
    for _ in range(50):
        ends = Ends(1)
        submit(dispatcher, lambda: names.append(threading.current_thread().name), ends)
        ends.wait()
    assert len(names) == 50


def test_a_body_whose_claim_is_gone_is_not_called(dispatcher: ThreadDispatcher) -> None:
    called: list[str] = []
    first, second = Ends(1), Ends(1)
    submit(dispatcher, lambda: called.append("revoked"), first, begins=False)
    submit(dispatcher, lambda: called.append("good"), second)
    second.wait()
    assert called == ["good"]
    assert first.values == []


def test_what_a_body_raises_is_its_outcome_and_the_thread_goes_on(dispatcher: ThreadDispatcher) -> None:
    def leave() -> None:
        raise SystemExit(3)

    ends = Ends(2)
    submit(dispatcher, leave, ends)
    submit(dispatcher, lambda: "after", ends)
    values = ends.wait()
    assert {type(value) for value in values} == {SystemExit, str}


def test_a_call_that_raises_while_it_begins_has_an_outcome(dispatcher: ThreadDispatcher) -> None:
    """Its claim may be marked as begun by then: no other node would ever end it."""

    class Breaking(Calling):
        def begin(self) -> bool:
            raise MemoryError

    ends = Ends(1)
    dispatcher.submit(Breaking(lambda: "never", ends, begins=True))
    assert [type(value) for value in ends.wait()] == [MemoryError]


def test_what_was_submitted_before_the_close_is_still_carried_out() -> None:
    dispatcher, ends = ThreadDispatcher(), Ends(100)
    for number in range(100):
        submit(dispatcher, lambda number=number: number, ends)
    dispatcher.close()
    assert sorted(ends.wait()) == list(range(100))


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_a_machine_without_threads_refuses_the_call_and_keeps_nothing_of_it(
    error: Exception, dispatcher: ThreadDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise error

    refused, good = Ends(1), Ends(1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="no more threads"):
            submit(dispatcher, lambda: "never", refused)
    submit(dispatcher, lambda: "later", good)
    assert good.wait() == ["later"]
    assert refused.values == []
