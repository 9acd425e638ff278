"""The clock of a SQLite file: the same for every process, moved by no step of a wall clock."""

from __future__ import annotations

import pytest

from solocron.clock import SECOND
from solocron.stores.sql.sqlite.clock import AHEAD, FRESH, PACE, Anchor, BootClock, boot_key

HOUR = 3600 * SECOND


class File:
    """Where the anchor is kept, with a compare-and-swap as the database has."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.writes = 0

    def load(self) -> Anchor | None:
        return None if self.text is None else Anchor.from_text(self.text)

    def swap(self, old: Anchor | None, new: Anchor) -> None:
        if self.text == (None if old is None else old.to_text()):
            self.text = new.to_text()
            self.writes += 1


class Machine:
    """Boot time, shared by all processes, and the wall clock that one process sees."""

    def __init__(self, boot: float = 1000.0, wall: int = 1_700_000_000 * SECOND) -> None:
        self.seconds = boot
        self.offset = wall - int(boot * SECOND)

    def boot(self) -> float:
        return self.seconds

    def wall(self) -> int:
        return self.offset + int(self.seconds * SECOND)


@pytest.fixture
def file() -> File:
    return File()


@pytest.fixture
def machine() -> Machine:
    return Machine()


def clock(machine: Machine, file: File) -> BootClock:
    return BootClock(machine, file.load, file.swap)


def test_the_first_opener_anchors_by_its_wall_clock(file: File, machine: Machine) -> None:
    assert clock(machine, file).now() == machine.wall()
    assert file.writes == 1


def test_it_runs_with_boot_time(file: File, machine: Machine) -> None:
    ours = clock(machine, file)
    before = ours.now()
    machine.seconds += 12.5
    assert ours.now() - before == int(12.5 * SECOND)


@pytest.mark.parametrize("step", [HOUR, -HOUR, 30 * SECOND, -2 * SECOND])
def test_a_step_of_the_wall_clock_moves_nothing(file: File, machine: Machine, step: int) -> None:
    ours = clock(machine, file)
    before = ours.now()
    machine.offset += step
    for _ in range(100):
        machine.seconds += 60
        ours.now()
    assert ours.now() - before == 6000 * SECOND
    assert file.writes == 1
    assert ours.skew() == step


def test_a_node_whose_wall_clock_is_wrong_sees_the_same_time_as_the_honest_one(file: File, machine: Machine) -> None:
    honest = clock(machine, file)
    honest.now()
    wrong = Machine(machine.seconds, machine.wall() + HOUR)
    other = clock(wrong, file)
    assert other.now() == honest.now()
    assert other.skew() == HOUR


@pytest.mark.parametrize("drift", [SECOND // 2, -SECOND // 2])
def test_a_small_drift_is_followed_slowly_and_never_backwards(file: File, machine: Machine, drift: int) -> None:
    ours = clock(machine, file)
    ours.now()
    machine.offset += drift
    last = ours.now()
    for _ in range(3000):
        machine.seconds += 1
        now = ours.now()
        assert abs(now - last - SECOND) <= PACE * SECOND + 1
        last = now
    assert abs(ours.skew()) < SECOND // 100
    assert file.writes == 2


def test_a_tiny_drift_is_left_alone(file: File, machine: Machine) -> None:
    ours = clock(machine, file)
    ours.now()
    machine.offset += SECOND // 1000
    machine.seconds += 3600
    ours.now()
    assert file.writes == 1


def test_all_processes_change_pace_at_the_same_instant(file: File, machine: Machine) -> None:
    """One looks at the file often, the other as rarely as it may: they never disagree."""
    eager, lazy = clock(machine, file), clock(machine, file)
    eager.now(), lazy.now()
    machine.offset += SECOND // 4
    for tick in range(2000):
        machine.seconds += 0.5
        eager.refresh()
        if tick % 7 == 0:
            assert eager.now() == lazy.now()
    assert file.writes == 2


def test_a_change_of_pace_is_announced_longer_ahead_than_anybody_may_be_out_of_date() -> None:
    assert AHEAD > FRESH


def test_two_that_anchor_at_once_agree_on_the_first(file: File) -> None:
    one, other = Machine(wall=1_700_000_000 * SECOND), Machine(wall=1_700_000_009 * SECOND)
    first, second = clock(one, file), clock(other, file)
    assert first.now() == second.now() == one.wall()


def test_an_anchor_survives_being_written_down() -> None:
    anchor = Anchor(1, 2, 3, 4, -PACE)
    assert Anchor.from_text(anchor.to_text()) == anchor


def test_the_name_of_a_boot_stays_the_same() -> None:
    assert boot_key() == boot_key()
    assert boot_key().startswith("clock ")
