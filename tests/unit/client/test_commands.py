"""Requests carry the time at which the program made them."""

from __future__ import annotations

from solocron import Scheduler
from solocron.clock import SECOND
from solocron.doctor import work
from solocron.doctor.sight import Sight
from solocron.runtime import Threads


def test_a_request_bears_the_wall_clock_in_microseconds() -> None:
    """Multiplied by a million once more it would not fit into 64 bits, which is all that some readers of JSON have."""
    scheduler = Scheduler("memory://")
    scheduler.every("1h", name="mail")(lambda: None)
    scheduler.tick()
    clock = Threads().clock
    before = clock.wall()
    first, second = (scheduler.open().request("mail") for _ in range(2))
    assert before <= first.body["asked"][0] <= second.body["asked"][0] <= clock.wall()
    assert first.body["asked"] < second.body["asked"]


def test_the_doctor_warns_of_a_request_that_no_node_accepts() -> None:
    """With a time far in the future a request was never old, and the doctor never warned."""
    scheduler = Scheduler("memory://")
    scheduler.every("1h", name="mail")(lambda: None)
    scheduler.tick()
    request = scheduler.open().request("mail")
    (line,) = work.requests(Sight(now=Threads().clock.wall() + 90 * SECOND, requests=(request,)))
    assert line.level == "WARN"
