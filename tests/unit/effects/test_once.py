"""Idempotency keys on every store: one caller does it, the others read what came of it, and none guesses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from solocron import AsyncRun, KeyBusy, Run, Scheduler, UncertainOutcome
from solocron.errors import InvalidError, StaleFence
from solocron.model.change import Change, Kind, SmallDocument
from solocron.model.documents.key import Opening, open_key
from solocron.stores.contract import Named
from tests.unit.effects.locks.conftest import Crowd

LONG = 30.0


def begun_by_a_dead_one(member: Scheduler, key: str = "receipt:42") -> None:
    """The document of a process that died in the middle: its session does not exist any more."""
    by = Opening(token="t", session="gone", owner="job@1 on n1")
    member.open().store.update(Named(Kind.KEY, (key,)), lambda doc, now: open_key(doc, by, now=now))


def taken_from_it(member: Scheduler) -> None:
    """Another process has decided that the one at work is dead, has begun it anew, and died too."""
    member.open().store.update(Named(Kind.KEY, ("receipt:42",)), lambda doc, now: Change(None))
    begun_by_a_dead_one(member)


def test_one_does_it_and_the_others_read_its_result(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    with a.once("receipt:42") as claim:
        assert claim
        assert claim.first
        claim.save({"sent": True})
    for member in (a, b):
        with member.once("receipt:42") as later:
            assert not later
            assert later.value == {"sent": True}


def test_a_body_that_raises_frees_the_key(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    with pytest.raises(ZeroDivisionError), a.once("receipt:42"):
        raise ZeroDivisionError
    with b.once("receipt:42") as claim:
        assert claim


def test_while_a_live_holder_works_others_are_told_or_wait(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    seen: list[bool] = []

    def wait_for_it() -> None:
        with b.once("receipt:42", wait="30s") as claim:
            seen.append(bool(claim))

    with a.once("receipt:42") as claim:
        assert claim
        with pytest.raises(KeyBusy, match="not begun a second time"), b.once("receipt:42"):
            raise AssertionError("the body ran")
        thread = threading.Thread(target=wait_for_it)
        thread.start()
    thread.join(LONG)
    assert seen == [False]


def test_where_the_holder_died_nobody_guesses(crowd: Crowd) -> None:
    a = crowd.join("a")
    begun_by_a_dead_one(a)
    with pytest.raises(UncertainOutcome, match="job@1 on n1 began it"), a.once("receipt:42"):
        raise AssertionError("the body ran")
    with a.once("receipt:42", on_uncertain="skip") as claim:
        assert not claim
        assert claim.uncertain
    with pytest.raises(UncertainOutcome), a.once("receipt:42", check=lambda: None):
        raise AssertionError("the body ran")


def test_the_outside_world_is_asked_and_believed(crowd: Crowd) -> None:
    a = crowd.join("a")
    asked: list[str] = []

    def happened(key: str) -> bool:
        asked.append(key)
        return True

    begun_by_a_dead_one(a)
    with a.once("receipt:42", check=happened) as claim:
        assert not claim
    with a.once("receipt:42", check=happened) as claim:
        assert not claim, "it is marked: no caller has to ask again"
    assert asked == ["receipt:42"]
    begun_by_a_dead_one(a, "receipt:43")
    with a.once("receipt:43", check=lambda number=43: number != 43) as claim:  # a default is no place for the key
        assert claim
    with a.once("receipt:43") as claim:
        assert not claim


def test_what_may_be_repeated_is_repeated_by_one(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    begun_by_a_dead_one(a)
    with a.once("receipt:42", on_uncertain="repeat") as claim:
        assert claim
        with pytest.raises(KeyBusy), b.once("receipt:42", on_uncertain="repeat"):
            raise AssertionError("the body ran")


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_one_that_was_counted_as_dead_cannot_mark_its_end(crowd: Crowd) -> None:
    a, b = crowd.join("a"), crowd.join("b")
    with pytest.raises(StaleFence, match="counted as dead"), a.once("receipt:42"):
        taken_from_it(b)
    with pytest.raises(UncertainOutcome), b.once("receipt:42"):
        raise AssertionError("the body ran")


def test_a_key_with_an_age_is_free_again_after_it(crowd: Crowd) -> None:
    a = crowd.join("a")
    with a.once("receipt:42", keep="90d") as claim:
        assert claim
    crowd.later(89 * 86_400)
    with a.once("receipt:42", keep="90d") as claim:
        assert not claim
    crowd.later(2 * 86_400)
    with a.once("receipt:42", keep="90d") as claim:
        assert claim


def test_of_many_at_once_one_does_it(crowd: Crowd) -> None:
    members = [crowd.join(name) for name in ("a", "b", "c")]
    barrier = threading.Barrier(len(members))
    done: list[str] = []

    def work(member: Scheduler) -> None:
        barrier.wait(LONG)
        for number in range(5):
            with member.once(f"receipt:{number}", wait="30s") as claim:
                if claim:
                    done.append(f"receipt:{number}")

    threads = [threading.Thread(target=work, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG * 2)
    assert sorted(done) == [f"receipt:{number}" for number in range(5)]


def test_in_a_run_the_key_is_the_same_for_every_attempt(crowd: Crowd) -> None:
    a = crowd.join("a")
    keys: list[str] = []
    mailed: list[int] = []

    @a.every("1h", name="digest", retries=2, backoff=_at_once())
    def digest(run: Run) -> None:
        keys.append(run.key)
        assert run.headers["Idempotency-Key"] == run.key
        for user in range(3):
            with run.once(f"digest:{user}") as claim:
                if claim:
                    if user == 1 and run.attempt == 1:
                        raise ValueError("no paper")
                    mailed.append(user)

    run = a.trigger("digest") if a.tick() is not None else ""
    while a.tick():
        pass
    assert a.get_run(run).status == "succeeded"
    assert len(set(keys)) == 1
    assert len(keys) == 2
    assert mailed == [0, 1, 2]


def _at_once() -> object:
    from solocron import Backoff

    return Backoff(first=0, cap=0)


# --- what does not depend on the store -------------------------------------------------------------------------------


def test_coroutine_jobs_use_the_same_with_async(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    told: list[object] = []

    async def happened() -> bool:
        return False

    @a.every("1h", name="digest")
    async def digest(run: AsyncRun) -> None:
        async with run.once("digest:1") as claim:
            told.append(bool(claim))
            claim.save(7)
        async with run.once("digest:1") as again:
            told.append(again.value)
        async with run.once("digest:2", check=happened) as asked:
            told.append(bool(asked))

    a.tick()
    begun_by_a_dead_one(a, "digest:2")
    a.trigger("digest")
    views = a.tick()
    assert [view.error for view in views] == [None]
    assert told == [True, 7, True]


def test_a_coroutine_that_is_cut_off_inside_leaves_doubt_and_before_it_nothing(room: Callable[[], Crowd]) -> None:
    a = room().join("a")

    async def story() -> None:
        started = asyncio.Event()

        async def work() -> None:
            async with a.once("receipt:42") as claim:
                assert claim
                started.set()
                await asyncio.sleep(LONG)

        task = asyncio.create_task(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    with pytest.raises(UncertainOutcome), a.once("receipt:42"):
        raise AssertionError("the body ran")


def test_a_coroutine_as_check_is_refused_where_nobody_can_await_it(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    begun_by_a_dead_one(a)

    async def happened() -> bool:
        return True

    with pytest.raises(InvalidError, match="use it with `async with`"), a.once("receipt:42", check=happened):
        raise AssertionError("the body ran")


@pytest.mark.parametrize(
    ("key", "options", "message"),
    [
        ("x" * 201, {}, "1 to 200 printable characters"),
        ("", {}, "printable"),
        ("x", {"on_uncertain": "maybe"}, 'choose "raise", "repeat" or "skip"'),
        ("x", {"keep": -1}, "is negative"),
        ("x", {"wait": "soon"}, "is not a duration"),
        ("x", {"check": 3}, "cannot be called"),
        ("x", {"connection": object(), "keep": "1d"}, "has no meaning with connection"),
    ],
)
def test_bad_input_is_refused_before_anything_is_begun(
    room: Callable[[], Crowd], key: str, options: dict[str, object], message: str
) -> None:
    a = room().join("a")
    with pytest.raises(InvalidError, match=message):
        a.once(key, **options)


def test_results_are_small_json_and_saved_by_who_does_it(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    with pytest.raises(InvalidError, match="is not JSON"), a.once("x") as claim:
        claim.save({1, 2})
    with pytest.raises(InvalidError, match="more than 65536"), a.once("x") as claim:
        claim.save("x" * 70_000)
    with a.once("x") as claim:
        claim.save([1])
    with a.once("x") as claim, pytest.raises(InvalidError, match="only the caller that performs the effect"):
        claim.save(2)
    found = a.open().store.read(Named(Kind.KEY, ("x",)))[0]
    assert isinstance(found, SmallDocument)
    assert found.body["value"] == [1]
