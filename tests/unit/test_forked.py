"""What a scheduler holds besides its node, in the child of a fork: none of it is the child's, and no lock stays shut.

At the moment of the fork a thread that does not exist in the child may have every mutex in its hand; so it is here.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from solocron import Scheduler
from solocron.events import Events
from solocron.telemetry.delivery import Deliveries

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
PATIENCE = 20


def in_a_fork(body: Callable[[], bool]) -> bool:
    """Whether the child says yes within its time; one that hangs is killed and has said no."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            code = 0 if body() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def test_what_the_parent_leads_is_not_the_childs_to_resign(url: str) -> None:
    scheduler = Scheduler(url, enabled=True)
    with scheduler.leader("chief") as leader:
        assert leader.wait(PATIENCE)
        fence = leader.fence

        def child() -> bool:
            led = leader.is_leader or leader.fence is not None
            scheduler.stop()
            return not led

        with leader._mutex:
            assert in_a_fork(child)
        assert leader.is_leader
        assert [(lock.name, lock.fence) for lock in scheduler.locks()] == [("leader:chief", fence)]
    scheduler.stop()


def test_a_lock_that_is_tied_to_the_parents_session_survives_a_stop_in_the_child(url: str) -> None:
    scheduler, other = Scheduler(url, enabled=True), Scheduler(url, enabled=True)
    held = scheduler.lock("door", keep_alive=True).acquire()
    assert held is not None
    assert scheduler._locks.private is not None
    with scheduler._locks.private._mutex:  # type: ignore[attr-defined]

        def child() -> bool:
            scheduler.stop()
            return True

        assert in_a_fork(child)
    assert other.lock("door").acquire() is None, "the session that holds it is still there"
    assert held.release()
    scheduler.stop()
    other.stop()


def test_the_child_sends_its_own_messages_and_none_of_the_parents() -> None:
    deliveries, sending, go = Deliveries(Events()), threading.Event(), threading.Event()
    sent: list[str] = []

    def slowly() -> None:
        sending.set()
        go.wait(PATIENCE)

    deliveries.add("of the parent", slowly)
    deliveries.add("of the parent too", lambda: sent.append("parent"))
    assert sending.wait(PATIENCE)

    def child() -> bool:
        deliveries.add("of the child", lambda: sent.append("child"))
        deliveries.close(PATIENCE)
        return sent == ["child"]

    with deliveries._changed:
        assert in_a_fork(child)
    go.set()
    deliveries.close(PATIENCE)
    assert sent == ["parent"]
