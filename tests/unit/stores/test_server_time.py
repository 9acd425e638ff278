"""The server's clock from blunt replies: never ahead of it, never back, and sharp after a few questions."""

from __future__ import annotations

import random

import pytest

from solocron.clock import MILLISECOND, SECOND
from solocron.stores.swap.server_time import ServerTime


class World:
    """A server with a clock of its own rate, and a network that takes its time."""

    def __init__(self, *, offset: int, rate: float = 1.0, seed: int = 1) -> None:
        self.boot = 100.0
        self.offset = offset
        self.rate = rate
        self.dice = random.Random(seed)
        self.time = ServerTime(lambda: self.boot)

    @property
    def server(self) -> int:
        return int(self.boot * SECOND * self.rate) + self.offset

    def ask(self, *, whole: bool = True) -> None:
        sent = self.time.begin_call()
        self.boot += self.dice.uniform(0.0005, 0.01)
        low = self.server // SECOND * SECOND if whole else self.server
        high = low + SECOND if whole else low
        self.boot += self.dice.uniform(0.0005, 0.01)
        self.time.told(low, high, sent)


@pytest.mark.parametrize("rate", [1.0, 1.0004, 0.9996])
@pytest.mark.parametrize("offset", [0, 123_456, 999_999])
def test_it_is_never_ahead_of_the_server_and_never_goes_back(offset: int, rate: float) -> None:
    world = World(offset=offset + 1_700_000_000 * SECOND, rate=rate)
    last = 0
    for _ in range(300):
        world.ask()
        for _ in range(3):
            now = world.time.now()
            assert last <= now <= world.server
            last = now
            world.boot += world.dice.choice((0.0, 0.003, 0.4))
    assert world.time.steps == 0


def test_a_question_at_the_turn_halves_the_doubt() -> None:
    world = World(offset=1_700_000_000 * SECOND + 337_000)
    world.ask()
    assert world.time.width > SECOND * 0.9
    asked = 0
    while (pause := world.time.next_question()) is not None:
        assert 0 <= pause <= 1.0
        world.boot += pause
        world.ask()
        asked += 1
    assert asked <= 8
    assert world.server - world.time.now() <= 40 * MILLISECOND
    world.boot += 10
    assert world.server - world.time.now() <= 60 * MILLISECOND


def test_a_clock_that_tells_microseconds_is_sharp_at_once() -> None:
    world = World(offset=1_700_000_000 * SECOND)
    world.ask(whole=False)
    assert world.time.next_question() is None
    assert world.server - world.time.now() <= 25 * MILLISECOND


def test_a_step_begins_anew_and_only_then_may_the_time_go_back() -> None:
    world = World(offset=1_700_000_000 * SECOND)
    world.ask()
    before = world.time.now()
    world.offset -= 30 * SECOND
    world.ask()
    assert world.time.steps == 1
    assert before - 32 * SECOND < world.time.now() <= world.server
    world.offset += 60 * SECOND
    world.ask()
    assert world.time.steps == 2
    assert world.server - world.time.now() <= 1_100 * MILLISECOND
