"""Hand-over to other processes: a node publishes, a worker picks up, and a message is good once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from solocron import AsyncRun, Backoff, InvalidError, Message, NotAccepted, Run, Scheduler, allow
from solocron.cli import main
from solocron.dispatch.carrier import check_options
from solocron.doctor.carriers import carriers
from solocron.doctor.sight import look
from solocron.engine.pick_up import PickUp
from solocron.errors import ConfigurationError, ConflictError, StoreUnavailable
from solocron.events import Event
from solocron.model.change import Absent, Kind
from solocron.model.documents.session import Life, Session, begin, end
from solocron.schedules import Every
from solocron.service.pages.parts import badge_of
from solocron.service.pages.slots import SlotFate, kind_of
from solocron.stores.contract import All, Named
from solocron.stores.documents import QUEUES
from solocron.testing.fleet import wait_until
from solocron.views import RunView

Make = Callable[..., Scheduler]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Scheduler] = []

    def scheduler(url: str = f"sqlite:///{tmp_path}/jobs.db", **options: Any) -> Scheduler:
        made.append(Scheduler(url, enabled=True, lease="3s", **options))
        return made[-1]

    yield scheduler
    for one in made:
        one.stop("1s")


class Queue:
    """A broker that keeps what it is given, or refuses it."""

    follows = True

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.refuses: Exception | None = None

    def publish(self, message: Message) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.messages.append(message)


def pair(make: Make, queue: Queue, **options: Any) -> tuple[Scheduler, Scheduler, list[Run]]:
    """A node and a worker that declare one job, and the runs that its function got."""
    ran: list[Run] = []

    def declare(scheduler: Scheduler) -> None:
        @scheduler.cron("0 3 1 1 *", name="books", run_in="queue", **options)
        def books(run: Run) -> str:
            ran.append(run)
            return "closed"

        scheduler.carrier("queue", queue)

    node, worker = make(), make()
    declare(node)
    declare(worker)
    return node, worker, ran


def _threads() -> list[str]:
    """The threads of nodes and guests in this process: what could send a statement by itself."""
    return [one.name for one in threading.enumerate() if one.name.startswith("solocron-") and "body" not in one.name]


def hand_over(node: Scheduler, queue: Queue, **trigger: Any) -> Message:
    node.tick()  # registers it
    node.trigger("books", **trigger)
    node.tick()
    return queue.messages[-1]


class TestFollowed:
    def test_the_body_runs_in_the_worker_under_its_own_fence(self, make: Make) -> None:
        queue = Queue()
        node, worker, ran = pair(make, queue)
        message = hand_over(node, queue, payload={"year": 2026})
        assert ran == []
        view = worker.carry_out(message.to_json())
        (run,) = ran
        assert (run.id, run.payload, run.attempt) == (message.run, {"year": 2026}, 1)
        assert run.fence > message.fence
        assert view is not None
        assert (view.status, view.result) == ("succeeded", "closed")

    def test_a_copy_of_the_message_is_dropped(self, make: Make) -> None:
        queue, dropped = Queue(), []
        node, worker, ran = pair(make, queue)
        worker.on("message dropped", lambda event: dropped.append(event.reason))
        text = json.dumps(hand_over(node, queue).to_json())
        assert worker.carry_out(text) is not None
        assert worker.carry_out(text) is None
        assert len(ran) == 1
        assert dropped == ["its attempt was picked up before, has ended, or was never handed over"]

    def test_copies_that_arrive_at_once_start_one_body(self, make: Make) -> None:
        """At two workers, and at two threads of one of them."""
        queue = Queue()
        node, worker, ran = pair(make, queue)
        other = make()
        other.carrier("queue", queue)
        other.cron("0 3 1 1 *", name="books", run_in="queue")(lambda run: ran.append(run))
        message = hand_over(node, queue)
        together = threading.Barrier(3)

        def work(scheduler: Scheduler) -> object:
            together.wait(60)
            return scheduler.carry_out(message)

        with ThreadPoolExecutor(3) as threads:
            views = list(threads.map(work, (worker, worker, other)))
        assert sorted(view is None for view in views) == [False, True, True]
        assert len(ran) == 1
        assert [str(view.status) for view in node.runs("books")] == ["succeeded"]

    def test_while_the_store_is_away_nothing_is_picked_up_and_the_queue_is_told(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue = Queue()
        node, worker, ran = pair(make, queue)
        assert worker.carry_out(hand_over(node, queue)) is not None, "the worker has a session"
        message = hand_over(node, queue)
        store = worker.open().store

        def away(*args: Any, **more: Any) -> Any:
            raise StoreUnavailable("the connection broke")

        with monkeypatch.context() as patched:
            patched.setattr(store, "update", away)
            with pytest.raises(StoreUnavailable, match=r"was not picked up: .* Deliver the message again"):
                worker.carry_out(message)
        assert (len(ran), str(node.get_run(message.run).status)) == (1, "offered")

        def delivered_again() -> RunView | None:
            try:
                return worker.carry_out(message)
            except StoreUnavailable:  # its session was lost meanwhile, and the next one has not begun
                return None

        view = wait_until(delivered_again, within=60, what="the message is picked up")
        assert (view.status, view.attempt, len(ran)) == ("succeeded", 1, 2)

    def test_a_failure_is_retried_as_another_message(self, make: Make) -> None:
        queue = Queue()
        node, worker = make(), make()
        for scheduler in (node, worker):

            @scheduler.cron("0 3 1 1 *", name="books", run_in="queue", retries=1, backoff=None)
            def books(run: Run) -> None:
                if run.attempt == 1:
                    raise ValueError("the books are open")

            scheduler.carrier("queue", queue)
        first = hand_over(node, queue)
        view = worker.carry_out(first)
        assert view is not None
        assert (view.status, view.attempt) == ("failed", 1)
        assert worker.carry_out(first) is None

    def test_a_late_copy_does_not_take_the_message_of_the_next_attempt_with_it(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both were taken for copies of one message, and the attempt came again after five minutes only."""
        queue = Queue()
        node, worker = make(), make()
        for scheduler in (node, worker):

            @scheduler.cron("0 3 1 1 *", name="books", run_in="queue", retries=1, backoff=Backoff(first="1ms"))
            def books(run: Run) -> None:
                if run.attempt == 1:
                    raise ValueError("the books are open")

            scheduler.carrier("queue", queue)
        first = hand_over(node, queue)
        assert worker.carry_out(first) is not None

        def next_message() -> Message | None:
            node.tick()
            return queue.messages[-1] if queue.messages[-1].attempt == 2 else None

        second = wait_until(next_message, within=30, what="the message of the second attempt")
        asked, go_on = threading.Event(), threading.Event()
        real = PickUp.claim

        def slow(self: PickUp, job: str, run: str, attempt: int) -> Any:
            if attempt == 1:
                asked.set()
                assert go_on.wait(30)
            return real(self, job, run, attempt)

        monkeypatch.setattr(PickUp, "claim", slow)
        views: list[Any] = []
        copy = threading.Thread(target=worker.carry_out, args=(first,))
        copy.start()
        assert asked.wait(30)
        other = threading.Thread(target=lambda: views.append(worker.carry_out(second)))
        other.start()
        other.join(0.2)
        go_on.set()
        copy.join()
        other.join()
        assert [(view.status, view.attempt) for view in views if view] == [("succeeded", 2)]

    def test_an_attempt_that_waits_in_the_queue_is_among_the_attempts(
        self, make: Make, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """The second one too: `show`, `runs` and the page of the run have a line for it, beside the first."""
        queue = Queue()
        node, worker = make(), make()
        for scheduler in (node, worker):

            @scheduler.cron("0 3 1 1 *", name="books", run_in="queue", retries=1, backoff=None)
            def books(run: Run) -> None:
                raise ValueError("the books are open")

            scheduler.carrier("queue", queue)
        first = hand_over(node, queue)
        worker.carry_out(first)
        wait_until(lambda: node.tick() == [] and len(queue.messages) == 2, within=60, what="the next message")
        seen = [(one.attempt, one.status) for one in node.attempts(first.run)]
        assert seen == [(1, "failed"), (2, "offered")]
        assert [(one.attempt, one.status) for one in node.runs("books")] == [(2, "offered"), (1, "failed")]
        last, attempts = node.open().whole_run(first.run)
        assert (last.status, [one.status for one in attempts]) == ("offered", ["failed", "offered"])
        assert main(["show", first.run, "--store", f"sqlite:///{tmp_path}/jobs.db"]) == 0
        table = capsys.readouterr().out.partition("\n\n")[2]
        assert ["failed" in table, "offered" in table] == [True, True]

    def test_all_nodes_may_be_replaced_while_workers_work(self, make: Make) -> None:
        """Ten bodies run in a worker while the only node stops and another one begins: none of them notices."""
        queue, bodies = Queue(), list[tuple[str, int]]()
        begun, may_end = threading.Semaphore(0), threading.Event()
        old, new, worker = make(), make(), make()
        for scheduler in (old, new, worker):

            @scheduler.cron("0 3 1 1 *", name="books", run_in="queue", overlap=allow(10), retries=1)
            def books(run: Run) -> str:
                bodies.append((run.id, run.attempt))
                begun.release()
                may_end.wait(60)
                run.check()
                return "closed"

            scheduler.carrier("queue", queue)
        old.tick()
        runs = [old.trigger("books") for _ in range(10)]
        wait_until(lambda: old.tick() == [] and len(queue.messages) == 10, within=60, what="ten messages")
        threads = [threading.Thread(target=worker.carry_out, args=(message,)) for message in queue.messages]
        for thread in threads:
            thread.start()
        assert all(begun.acquire(timeout=60) for _ in threads)
        old.stop("1s")
        new.start()
        wait_until(lambda: new.health().ready, within=60, what="the new node is ready")
        may_end.set()
        for thread in threads:
            thread.join()
        assert sorted(bodies) == sorted((run, 1) for run in runs)
        assert {new.get_run(run).status for run in runs} == {"succeeded"}
        assert len(queue.messages) == 10

    def test_a_worker_without_messages_sends_nothing(self, make: Make) -> None:
        """Neither before the first one nor once its session is over, two leases after the last one."""
        queue = Queue()
        node, worker, _ = pair(make, queue)
        statements = worker._core.store.statements  # type: ignore[attr-defined]
        assert statements.total() == 0
        message = hand_over(node, queue)
        assert statements.total() == 0
        worker.carry_out(message)
        assert statements.total() > 0
        guest = worker._guest
        assert guest is not None
        guest._last -= 2 * worker._core.settings.lease  # as if that time had passed
        wait_until(lambda: guest.node is None, within=60, what="the session ends")
        wait_until(lambda: not _threads(), within=60, what=lambda: f"its threads end: {_threads()}")
        sessions = [one for one in node.open().store.read(All(Kind.SESSION)) if isinstance(one, Session)]
        assert all(one.state is not Life.LIVE for one in sessions)

    def test_the_options_of_the_job_reach_the_carrier(self, make: Make) -> None:
        queue = Queue()
        node, _, _ = pair(make, queue, hand_over={"priority": 5})
        message = hand_over(node, queue)
        assert message.options == {"priority": 5}
        assert message.payload is None
        assert message.id.startswith("solocron-books-")
        assert message.headers["solocron-run"] == message.run

    def test_a_coroutine_runs_on_the_loop_of_the_worker(self, make: Make) -> None:
        queue, loops = Queue(), []
        node, worker = make(), make()
        for scheduler in (node, worker):

            @scheduler.cron("0 3 1 1 *", name="books", run_in="queue")
            async def books(run: AsyncRun) -> None:
                await asyncio.sleep(0)
                loops.append(asyncio.get_running_loop())

            scheduler.carrier("queue", queue)
        message = hand_over(node, queue)

        async def work() -> None:
            assert await worker.aio.carry_out(message) is not None
            assert loops == [asyncio.get_running_loop()]

        asyncio.run(work())

    def test_a_function_does_not_block_the_loop_of_the_worker(self, make: Make) -> None:
        queue, threads = Queue(), []
        node, worker = make(), make()
        for scheduler in (node, worker):

            @scheduler.cron("0 3 1 1 *", name="books", run_in="queue")
            def books() -> None:
                threads.append(threading.current_thread())

            scheduler.carrier("queue", queue)
        message = hand_over(node, queue)

        async def work() -> None:
            view = await worker.aio.carry_out(message)
            assert view is not None
            assert view.status == "succeeded"

        asyncio.run(work())
        assert len(threads) == 1
        assert threads[0] is not threading.current_thread()

    def test_a_worker_without_the_function_leaves_it_alone(self, make: Make) -> None:
        queue, seen = Queue(), []
        node, _, ran = pair(make, queue)
        other = make()
        other.on("no handler", lambda event: seen.append(event.job))
        assert other.carry_out(hand_over(node, queue)) is None
        assert (ran, seen) == ([], ["books"])

    def test_a_message_of_another_namespace_is_dropped(self, make: Make) -> None:
        queue = Queue()
        node, _, ran = pair(make, queue)
        other = make(namespace="other")
        assert other.carry_out(hand_over(node, queue)) is None
        assert ran == []

    def test_it_is_listed_as_offered_while_it_waits(self, make: Make) -> None:
        queue = Queue()
        node, worker, _ = pair(make, queue)
        message = hand_over(node, queue)
        view = node.get_run(message.run)
        assert view.status == "offered"
        assert view.reason is not None
        assert view.reason.startswith("waits in queue since ")
        worker.carry_out(message)
        assert node.get_run(message.run).status == "succeeded"

    def test_the_listing_of_all_jobs_has_it_until_it_ends(self, make: Make) -> None:
        queue, seen = Queue(), []
        node, worker = make(), make()
        for scheduler in (node, worker):

            @scheduler.cron("0 3 1 1 *", name="books", run_in="queue")
            def books(run: Run) -> None:
                seen.extend(node.runs())
                seen.extend(node.status().running)

            scheduler.carrier("queue", queue)
        message = hand_over(node, queue)
        (listed,) = node.runs()
        assert (listed.run, listed.status) == (message.run, "offered")
        assert [view.run for view in node.runs(status="offered")] == [message.run]
        assert node.runs(status="running") == node.runs(status="succeeded") == []
        (waits,) = node.status().offered
        assert (waits.run, waits.reason) == (listed.run, listed.reason)
        assert node.status().running == ()
        worker.carry_out(message)
        assert [(view.status, str(view.reason).partition(" by ")[0]) for view in seen] == [("running", "picked up")] * 2
        assert str(seen[0].reason).endswith(" from queue")
        assert [view.status for view in node.runs()] == ["succeeded"]
        assert node.status().offered == ()

    def test_the_sweeper_and_the_doctor_take_no_queue_for_a_dead_session(self, make: Make) -> None:
        queue = Queue()
        node, worker, ran = pair(make, queue)
        message = hand_over(node, queue)
        assert node.open().store.holders() == {QUEUES}
        node.tick()
        assert look(node.open().store).unknown == ()
        assert worker.carry_out(message) is not None
        assert len(ran) == 1
        assert QUEUES not in node.open().store.holders()


class Knowing(Queue):
    """A queue that knows why a message does not start, and can take one out."""

    def __init__(self) -> None:
        super().__init__()
        self.withdrawn: list[str] = []

    def look(self, id: str) -> str:
        return f"no worker listens to {id[:8]}"

    def withdraw(self, id: str) -> None:
        self.withdrawn.append(id)


class TestLookAndWithdraw:
    def lapse(self, make: Make, queue: Queue) -> tuple[Scheduler, list[Event]]:
        """Hand a run over that no worker picks up in time, twice."""
        node, seen = make(), list[Event]()
        node.carrier("queue", queue, pickup="10ms")
        node.cron("0 3 1 1 *", name="books", run_in="queue")(lambda: None)
        node.on("not picked up", seen.append)
        hand_over(node, queue)
        wait_until(lambda: node.tick() == [] and len(queue.messages) >= 3, within=60, what="the offer lapses")
        return node, seen

    def test_a_lapse_says_what_the_carrier_knows(self, make: Make) -> None:
        queue = Knowing()
        node, seen = self.lapse(make, queue)
        assert {event.reason for event in seen} == {"no worker listens to solocron"}
        assert [event.tries for event in seen[:2]] == [2, 3]
        reason = str(node.get_run(queue.messages[0].run).reason)
        assert reason.endswith("times: no worker listens to solocron")
        assert len({message.id for message in queue.messages}) == 1
        (line,) = carriers(look(node.open().store))
        assert line.level == "WARN"
        assert line.detail.startswith("queue: books; 1 in its queue, the longest for ")
        assert line.detail.endswith(": no worker listens to solocron")

    def test_a_carrier_that_fails_to_look_loses_nothing(self, make: Make) -> None:
        class Silent(Knowing):
            def look(self, id: str) -> str:
                raise ConnectionError("reset")

        _, seen = self.lapse(make, Silent())
        assert {event.reason for event in seen} == {None}

    def test_what_is_cancelled_in_its_queue_is_taken_out(self, make: Make) -> None:
        queue = Knowing()
        node, _, _ = pair(make, queue)
        message = hand_over(node, queue)
        assert node.cancel(message.run) == "cancelled"
        assert queue.withdrawn == [message.id]
        assert node.cancel(message.run) == "cancelled"
        assert queue.withdrawn == [message.id]


class TestNotAccepted:
    def test_it_waits_and_is_published_again(self, make: Make) -> None:
        queue, failed = Queue(), []
        node, _, ran = pair(make, queue)
        node.on("hand-over failed", failed.append)
        node.tick()
        node.trigger("books")
        queue.refuses = NotAccepted("no connection")
        node.tick()
        assert [event.reason for event in failed] == ["not accepted by queue (NotAccepted: no connection)"]
        assert node.get_job("books").waiting == 1
        assert (queue.messages, ran) == ([], [])

    def test_an_answer_that_was_lost_leaves_the_message_good(self, make: Make) -> None:
        queue = Queue()
        node, worker, ran = pair(make, queue)
        node.tick()
        node.trigger("books")
        published: list[Message] = []

        def lost(message: Message) -> None:
            published.append(message)
            raise ConnectionError("reset")

        queue.publish = lost  # type: ignore[method-assign]
        node.tick()
        assert worker.carry_out(published[0]) is not None
        assert len(ran) == 1


class TestForwarded:
    def test_a_function_is_a_carrier_and_its_return_is_the_outcome(self, make: Make) -> None:
        node, sent = make(), []

        @node.cron("0 3 1 1 *", name="books", run_in="post", payload={"a": 1})
        def books() -> None:
            raise AssertionError("it runs elsewhere")

        node.carrier("post", sent.append)
        node.tick()
        node.trigger("books", payload={"a": 2})
        (view,) = node.tick()
        (message,) = sent
        assert (view.status, view.reason) == ("handed_over", f"accepted by post as {message.id}")
        assert message.payload == {"a": 2}
        assert node.carry_out(message) is None

    def test_a_job_without_a_function_is_sent_to_its_target(self, make: Make) -> None:
        node, sent = make(), []
        node.carrier("post", sent.append)
        node.forward(
            "nightly", "post", "reports.nightly", "0 3 * * *", payload={"year": 2026}, hand_over={"queue": "x"}
        )
        node.tick()
        node.trigger("nightly")
        (view,) = node.tick()
        (message,) = sent
        assert (view.status, view.reason) == ("handed_over", f"accepted by post as {message.id}")
        assert (message.target, message.payload, message.options) == ("reports.nightly", {"year": 2026}, {"queue": "x"})
        job = node.get_job("nightly")
        assert (job.application, job.run_in, job.hand_over) == (
            __name__.partition(".")[0], "post", {"target": "reports.nightly", "queue": "x"},
        )  # fmt: skip

    def test_a_carrier_whose_workers_pick_up_forwards_what_has_a_target(self, make: Make) -> None:
        class Both(Queue):
            def __init__(self) -> None:
                super().__init__()
                self.forwarded: list[Message] = []

            def forward(self, message: Message) -> None:
                self.forwarded.append(message)

        node, queue = make(), Both()
        node.carrier("queue", queue)
        node.forward("nightly", "queue", "reports.nightly", "0 3 * * *")
        node.tick()
        node.trigger("nightly", {"a": 1})
        (view,) = node.tick()
        assert (view.status, queue.messages) == ("handed_over", [])
        assert [message.payload for message in queue.forwarded] == [{"a": 1}]
        assert node.carry_out(queue.forwarded[0]) is None

    def test_a_message_that_can_never_be_carried_fails_its_run(self, make: Make) -> None:
        def refuse(message: Message) -> None:
            raise InvalidError("its payload is not a mapping")

        node = make()
        node.carrier("post", refuse)
        node.forward("nightly", "post", "reports.nightly", "0 3 * * *")
        node.tick()
        node.trigger("nightly")
        (view,) = node.tick()
        assert (view.status, view.error) == ("failed", "post cannot carry it: its payload is not a mapping")

    def test_it_counts_as_well(self, make: Make) -> None:
        node, sent = make(), []
        node.carrier("post", sent.append)
        node.forward("often", "post", "reports.often", Every("1s"), start_within="10m")
        node.tick()
        wait_until(lambda: any(view.status == "handed_over" for view in node.tick()), within=60, what="a slot is sent")
        (view, *_) = [view for view in node.runs("often") if view.status == "handed_over"]
        (slot,) = node.slots("often", view.slot, view.slot + timedelta(seconds=1))
        assert slot.status == "handed_over"
        assert kind_of(SlotFate(slot=slot.slot, status=slot.status)) == "ok"
        assert badge_of("handed_over").tone == "ok"
        why = node.why("often", view.slot).verdict
        assert why.startswith("often handed its slot ")
        assert why.endswith("what became of it there is not known here.")
        span = view.slot, view.slot + timedelta(milliseconds=1)
        again = node.backfill("often", *span, only="not_well", dry_run=True)
        assert again.total == 0


class TestRefused:
    @pytest.mark.parametrize(
        ("target", "options", "says"),
        [
            ("", {}, "name of a task"),
            (5, {}, "name of a task"),
            ("t", {"retries": 3}, "retries= is not for a forwarded job"),
            ("t", {"timeout": "5m"}, "set it on the other side"),
            ("t", {"run_in": "thread"}, "given already"),
            ("t", {"limit": "db:2"}, "bound the workers of that queue instead"),
            ("t", {"payload": object()}, "not JSON"),
        ],
    )
    def test_what_cannot_be_forwarded(self, make: Make, target: Any, options: Any, says: str) -> None:
        scheduler = make()
        with pytest.raises(InvalidError, match=says):
            scheduler.forward("nightly", "post", target, "0 3 * * *", **options)
        assert scheduler.registry.jobs == {}

    def test_a_target_beside_a_function(self, make: Make) -> None:
        with pytest.raises(InvalidError, match="would never be called"):
            make().cron("0 3 * * *", run_in="post", hand_over={"target": "t"})(lambda: None)

    def test_a_target_where_workers_only_pick_up(self, make: Make) -> None:
        node = make()
        node.carrier("queue", Queue())
        node.forward("nightly", "queue", "t", "0 3 * * *")
        with pytest.raises(ConfigurationError, match=r"has no forward\(message\)"):
            node.tick()

    def test_a_store_that_no_worker_can_open(self, make: Make) -> None:
        with pytest.raises(ConfigurationError, match="cannot open this one"):
            make("memory://").carrier("queue", Queue())

    def test_a_carrier_that_was_not_named(self, make: Make) -> None:
        node = make()
        node.cron("0 3 * * *", name="books", run_in="quue")(lambda: None)
        with pytest.raises(ConfigurationError, match=r"scheduler.carrier\('quue', ...\)"):
            node.tick()

    def test_an_option_that_the_carrier_does_not_know(self, make: Make) -> None:
        """It is told with the job that has it: a program may have hundreds."""

        class Choosy(Queue):
            def check(self, options: Any) -> None:
                check_options(options, ("priority",), "Choosy")

        node = make()
        node.carrier("queue", Choosy())
        node.cron("0 3 * * *", name="books", run_in="queue", hand_over={"prioriti": 5})(lambda: None)
        with pytest.raises(InvalidError, match=r"^books: hand_over={'prioriti': ...} is not an option of Choosy"):
            node.tick()

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"limit": "db:2"}, "bound the workers of that queue instead"),
            ({"nodes": 2}, "bound the workers of that queue instead"),
            ({"prefer": "last"}, "bound the workers of that queue instead"),
            ({"hand_over": 5}, "not a mapping"),
            ({"hand_over": {"x": object()}}, "not JSON"),
            ({"run_in": "thread", "hand_over": {}}, "names none"),
            ({"run_in": "a queue"}, "is not known"),
        ],
    )
    def test_options_that_do_not_go_together(self, make: Make, options: Any, says: str) -> None:
        with pytest.raises(InvalidError, match=says):
            make().cron("0 3 * * *", **{"run_in": "queue", **options})

    @pytest.mark.parametrize("carrier", [5, object()])
    def test_what_is_no_carrier(self, make: Make, carrier: Any) -> None:
        with pytest.raises(InvalidError, match="has no publish"):
            make().carrier("queue", carrier)

    def test_two_of_one_name(self, make: Make) -> None:
        node = make()
        node.carrier("queue", Queue())
        with pytest.raises(InvalidError, match="named already"):
            node.carrier("queue", Queue())
        with pytest.raises(InvalidError, match="a place of its own"):
            node.carrier("thread", Queue())

    @pytest.mark.parametrize("value", ["{", "5", {}, {"namespace": "default", "job": 1, "run": "", "attempt": 1}])
    def test_what_is_no_message(self, make: Make, value: Any) -> None:
        with pytest.raises(InvalidError, match="nothing was run"):
            make().carry_out(value)


class TestBesideAnOlderVersion:
    """A node that knows no carriers would claim such a run and fail it, so it must never meet the definition."""

    def old_node(self, scheduler: Scheduler) -> Callable[[], None]:
        """Begin the session of a node that lists no features; return what ends it."""
        store = scheduler.open().store
        which = Named(Kind.SESSION, ("old",))
        session = Session(name="old", node="old-1", host="h", pid=1, version="0.0.9", lease=60_000_000)
        store.update(which, lambda doc, now: begin(_session(doc), session, now=now))

        def stop() -> None:
            store.update(which, lambda doc, now: end(_session(doc), now=now, reason="deployed"))

        return stop

    def test_a_new_job_waits_until_the_old_node_is_gone(self, make: Make) -> None:
        queue, blocked = Queue(), []
        node, _, _ = pair(make, queue)
        node.on("job blocked", lambda event: blocked.append((event.job, event.error)))
        stop = self.old_node(node)
        node.tick()
        assert node.jobs() == []
        ((job, why),) = blocked
        assert job == "books"
        assert why.startswith("a node of an older version lives, which does not know 'queue' for a carrier")
        stop()
        message = hand_over(node, queue)
        assert message.job == "books"

    def test_a_job_that_ran_on_nodes_goes_on_there(self, make: Make) -> None:
        queue, ran = Queue(), []
        before, after = make(), make()
        before.cron("0 3 1 1 *", name="books")(lambda: ran.append("before"))
        before.tick()
        after.carrier("queue", queue)
        after.cron("0 3 1 1 *", name="books", run_in="queue")(lambda: ran.append("after"))
        stop = self.old_node(after)
        after.tick()
        after.trigger("books")
        (view,) = after.tick()
        assert (view.status, ran, queue.messages) == ("succeeded", ["after"], [])
        stop()
        hand_over(after, queue)
        assert len(queue.messages) == 1

    def test_it_is_not_added_as_data_either(self, make: Make) -> None:
        node, _, _ = pair(make, Queue())
        stop = self.old_node(node)
        with pytest.raises(ConflictError, match=r"the node old-1 is of an older version \(0\.0\.9\)"):
            node.add("more", "books", "0 4 * * *", run_in="queue")
        stop()
        assert node.add("more", "books", "0 4 * * *", run_in="queue").run_in == "queue"


def _session(doc: object) -> Session | Absent:
    assert isinstance(doc, Session | Absent)
    return doc


def test_events_say_what_happened(make: Make) -> None:
    queue = Queue()
    node, worker, _ = pair(make, queue)
    seen: list[Event] = []
    node.on("handed over", seen.append)
    worker.on("picked up", seen.append)
    message = hand_over(node, queue)
    worker.carry_out(message)
    assert [(event.name, event.run) for event in seen] == [("handed over", message.run), ("picked up", message.run)]
    assert (seen[0].carrier, seen[0].message_id, seen[0].overtaken) == ("queue", message.id, False)
    assert (seen[1].carrier, seen[1].waited_s >= 0) == ("queue", True)


def test_the_end_of_a_run_names_its_origin_and_its_carrier(make: Make) -> None:
    queue, ends = Queue(), list[Event]()
    node, worker, _ = pair(make, queue)
    worker.on("finished", ends.append)
    worker.carry_out(hand_over(node, queue))
    assert [(end.carrier, end.origin, end.final) for end in ends] == [("queue", "trigger", True)]
