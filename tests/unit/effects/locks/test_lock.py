"""Locks on every store: one holder, its own release only, times by the store's clock, a fence that grows forever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from solocron import Lock, Scheduler, locked
from solocron.clock import MILLISECOND
from solocron.effects.locks.held import HELD, Held, assert_locked
from solocron.errors import ConflictError, InvalidError, LockBusy, LockLost, NotFoundError, StoreRefused
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.lock import raise_fence
from solocron.stores.contract import Named
from tests.unit.effects.locks.conftest import Crowd

LONG = 30.0


def taken(lock: Lock) -> Held:
    held = lock.acquire()
    assert held is not None
    return held


def test_only_one_has_it_and_it_is_free_afterwards(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    with a.lock("door") as held:
        assert held.fence > 0
        assert not held.lost
        assert b.lock("door").acquire() is None
        with pytest.raises(LockBusy, match="body was not run"), b.lock("door"):
            raise AssertionError("the body ran")
    with b.lock("door") as later:
        assert later.fence > held.fence


def test_it_is_released_when_the_body_raises(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    with pytest.raises(ZeroDivisionError), a.lock("door"):
        raise ZeroDivisionError
    with b.lock("door"):
        pass


def test_after_its_time_somebody_else_gets_it_and_the_old_holder_is_told(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    old = taken(a.lock("door", at_most="10m"))
    crowd.later(599)
    assert b.lock("door").acquire() is None
    crowd.later(2)
    new = taken(b.lock("door"))
    assert new.fence > old.fence
    with pytest.raises(LockLost):
        old.extend("10m")
    assert old.lost
    assert old.release() is False
    assert not new.lost
    assert a.lock("door").acquire() is None, "the old holder has not released its successor's lock"
    assert new.release() is True


def test_an_extended_lock_is_held_for_longer(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    held = taken(a.lock("door", at_most="10m"))
    crowd.later(500)
    held.extend("20m")
    crowd.later(1000)
    assert b.lock("door").acquire() is None
    crowd.later(201)
    assert b.lock("door").acquire() is not None


def test_inside_at_least_it_stays_taken_after_its_release(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    with a.lock("door", at_most="10m", at_least="1m"):
        pass
    assert b.lock("door").acquire() is None
    assert a.locks()[0].state == "kept"
    crowd.later(61)
    assert b.lock("door").acquire() is not None


def test_a_lock_tied_to_a_private_session_outlives_any_time_and_ends_with_it(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    with a.lock("door", keep_alive=True) as held:
        assert b.lock("door").acquire() is None
        held.extend("1h")
        assert not held.lost
        view = b.locks()[0]
        assert (view.state, view.owner, view.until) == ("held", "a", None)
        assert [node.node for node in b.nodes()] == ["a"]
    assert b.nodes() == [], "its session goes with it"
    assert b.lock("door", keep_alive=True).acquire() is not None


def test_two_threads_wait_in_line_and_both_get_it(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    order: list[str] = []
    first = taken(a.lock("door"))

    def wait_for_it() -> None:
        with b.lock("door", wait="30s"):
            order.append("b")

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    while not a.locks()[0].waiting:
        pass
    order.append("a")
    first.release()
    thread.join(LONG)
    assert order == ["a", "b"]


def test_who_waits_gives_up_after_its_time_and_leaves_the_queue(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    with a.lock("door"):
        assert b.lock("door", wait="50ms").acquire() is None
        assert a.locks()[0].waiting == 0


def test_an_unprotected_counter_is_counted_right_under_it(crowd: Crowd) -> None:
    """ShedLock's fuzz test: without the lock the read and the write of two threads would overlap."""
    members = [crowd.join(name) for name in ("a", "b", "c")]
    counter, inside, worst = [0], [0], [0]

    def count(member: Scheduler) -> None:
        for _ in range(8):
            with member.lock("counter", wait="60s"):
                inside[0] += 1
                worst[0] = max(worst[0], inside[0])
                seen = counter[0]
                threading.Event().wait(0.001)
                counter[0] = seen + 1
                inside[0] -= 1

    threads = [threading.Thread(target=count, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG * 2)
    assert counter == [24]
    assert worst == [1]


def test_a_release_by_force_is_recorded_and_the_old_holder_cannot_release(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    old = taken(a.lock("door"))
    view = b.force_release("door", reason="it hangs", by="ops")
    assert view.state == "free"
    assert view.fence > old.fence
    assert [(one["by"], one["why"], one["owner"]) for one in view.forced] == [("ops", "it hangs", "a")]
    with b.lock("door") as new:
        assert new.fence > view.fence
        assert old.release() is False
        assert b.locks()[0].state == "held"
    with pytest.raises(ConflictError, match="not held"):
        b.force_release("door", reason="again")
    with pytest.raises(NotFoundError):
        b.force_release("window", reason="x")


@pytest.mark.invariant("I3: the fences of a job only grow")
def test_a_store_that_was_restored_is_refused_until_someone_says_so(crowd: Crowd) -> None:
    a = crowd.join("a")
    store = a.open().store
    with a.lock("door"):
        pass
    backup = store.read(Named(Kind.LOCK, ("door",)))[0]
    with a.lock("door"):
        pass
    store.update(Named(Kind.LOCK, ("door",)), lambda doc, now: Change(backup))
    with pytest.raises(StoreRefused, match="restored"):
        a.lock("door").acquire()
    a.open().restored()
    with a.lock("door"):
        pass


def test_the_lock_is_taken_in_a_step_of_its_own_and_seen_by_others_at_once(crowd: Crowd) -> None:
    """Whatever transaction the caller may have open: a second client sees it before that ends."""
    a, b = crowd.join("a"), crowd.join("b")
    with a.lock("door"):
        docs = b.open().store.read(Named(Kind.LOCK, ("door",)))
        assert docs[0].body["owner"] == "a"  # type: ignore[union-attr]


# --- what does not depend on the store -------------------------------------------------------------------------------


def test_taking_it_twice_is_refused_instead_of_waiting_for_oneself(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    with a.lock("door"):
        with pytest.raises(ConflictError, match="cannot be taken twice"), a.lock("door", wait=True):
            raise AssertionError
        with a.lock("window"):
            pass
    with a.lock("door"):
        pass


def test_another_thread_of_the_same_process_is_anybody_else(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    got: list[object] = []
    with a.lock("door"):
        thread = threading.Thread(target=lambda: got.append(a.lock("door").acquire()))
        thread.start()
        thread.join(LONG)
    assert got == [None]


def test_assert_locked_knows_what_this_thread_holds(room: Callable[[], Crowd]) -> None:
    crowd = room()
    a = crowd.join("a")
    with pytest.raises(ConflictError, match="no lock is held here"):
        assert_locked()
    with a.lock("door") as held:
        assert assert_locked("door") is held
        assert assert_locked() is held
        with pytest.raises(ConflictError, match="'window' is not held here"):
            assert_locked("window")
        other: list[BaseException] = []

        def elsewhere() -> None:
            try:
                assert_locked("door")
            except ConflictError as error:
                other.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(LONG)
        assert len(other) == 1
    with pytest.raises(ConflictError):
        assert_locked("door")
    assert all(held.released for held in HELD.get())


def test_a_lock_of_a_url_needs_no_scheduler(tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/alone.db"
    with Lock(url, "door", at_most="1m") as held:
        assert held.fence > 0
        other = Lock(url, "door", at_most="1m")
        assert repr(other).startswith("<Lock 'door' at sqlite:///")
        assert threaded(other.acquire) is None
        other.close()
    held.lock.close()


def threaded(call: Callable[[], object]) -> object:
    """What a call answers in another thread, where nothing is held."""
    box: list[object] = []
    thread = threading.Thread(target=lambda: box.append(call()))
    thread.start()
    thread.join(LONG)
    return box[0]


def test_a_decorated_function_runs_for_one_caller_only(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    inside, go = threading.Event(), threading.Event()

    @locked("tenant-{id}", store=a, at_most="1m")
    def work(id: int) -> int:
        assert assert_locked(f"tenant-{id}").fence > 0
        inside.set()
        assert go.wait(LONG)
        return id

    results: list[int | None] = []
    thread = threading.Thread(target=lambda: results.append(work(7)))
    thread.start()
    assert inside.wait(LONG)
    assert work(7) is None
    go.set()
    assert work(8) == 8
    thread.join(LONG)
    assert results == [7]


def test_a_decorated_function_can_raise_instead(room: Callable[[], Crowd]) -> None:
    a = room().join("a")

    @locked("door", store=a, busy="raise")
    def work() -> str:
        return "done"

    assert work() == "done"
    held = taken(a.lock("door"))
    with pytest.raises(LockBusy):
        threaded_raise(work)
    held.release()


def threaded_raise(call: Callable[[], object]) -> None:
    box: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(LONG)
    if box:
        raise box[0]


def test_coroutines_take_it_and_a_cancelled_one_leaves_nothing_behind(room: Callable[[], Crowd]) -> None:
    crowd = room()
    a, b = crowd.join("a"), crowd.join("b")

    @locked("job", store=a)
    async def work() -> str:
        assert_locked("job")
        return "done"

    async def story() -> None:
        async with a.lock("door") as held:
            assert assert_locked("door") is held
            with pytest.raises(ConflictError, match="twice"):
                async with a.lock("door"):
                    raise AssertionError
            waiter = asyncio.create_task(fetch(b))
            while not a.locks()[0].waiting:
                await asyncio.sleep(0)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
            assert a.locks()[0].waiting == 0
        assert await work() == "done"
        assert await asyncio.wait_for(fetch(b), LONG) == "got it"

    async def fetch(member: Scheduler) -> str:
        async with member.lock("door", wait="30s"):
            return "got it"

    asyncio.run(story())
    assert [view.state for view in a.locks()] == ["free", "free"]


def test_many_waiting_coroutines_do_not_starve_the_one_that_releases(room: Callable[[], Crowd]) -> None:
    """More of them than the loop's executor has threads."""
    a = room().join("a")
    done: list[int] = []

    async def work(number: int) -> None:
        async with a.lock("door", wait="60s"):
            done.append(number)

    async def story() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        await asyncio.gather(*(work(number) for number in range(8)))

    asyncio.run(asyncio.wait_for(story(), LONG * 2))
    assert sorted(done) == list(range(8))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x" * 201, {}, "1 to 200 printable characters"),
        ("", {}, "1 to 200 printable characters"),
        (" x", {}, "no space at either end"),
        ("a\nb", {}, "printable"),
        ("x", {"at_most": -1}, "is negative"),
        ("x", {"at_most": 0}, "at_most is 0"),
        ("x", {"at_most": "10"}, "is not a duration"),
        ("x", {"at_most": "1m", "at_least": "2m"}, "at_least is longer than at_most"),
        ("x", {"at_most": "1m", "keep_alive": True}, "has no meaning"),
        ("x", {"wait": -1}, "is negative"),
    ],
)
def test_bad_input_is_refused_with_one_clear_message(
    room: Callable[[], Crowd], name: str, options: dict[str, object], message: str
) -> None:
    a = room().join("a")
    with pytest.raises(InvalidError, match=message):
        a.lock(name, **options)  # type: ignore[arg-type]
    assert a.locks() == []


def test_a_name_made_of_a_parameter_that_does_not_exist_is_refused_when_declared() -> None:
    with pytest.raises(InvalidError, match="no parameter 'tenant'"):

        @locked("x-{tenant}")
        def work(id: int) -> None: ...

    with pytest.raises(InvalidError, match='choose "skip" or "raise"'):
        locked("x", busy="maybe")


def test_an_absent_document_is_no_lock(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    assert a.locks() == []
    result = a.open().store.update(Named(Kind.LOCK, ("x",)), lambda doc, now: None).results[0]
    assert isinstance(result.doc, Absent)


@pytest.mark.invariant("I3: the fences of a job only grow")
def test_fences_that_ran_ahead_of_the_clock_are_above_none_after_a_restore(crowd: Crowd) -> None:
    """Grants within one millisecond count on from each other: the clock alone is no bound of what was granted."""
    a = crowd.join("a")
    store, door = a.open().store, Named(Kind.LOCK, ("door",))
    with a.lock("door"):
        pass
    backup = store.read(door)[0]
    ahead = store.clock() // MILLISECOND + 1_000
    store.update(door, lambda doc, now: raise_fence(doc, fence=ahead))
    with a.lock("door") as held:
        assert held.fence == ahead + 1
    store.update(door, lambda doc, now: Change(backup))
    a.open().restored()
    with a.lock("door") as later:
        assert later.fence > held.fence
