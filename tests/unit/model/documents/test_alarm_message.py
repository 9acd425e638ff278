"""Messages of a kind: an outage of any size is one raised and one cleared, whichever node looks, late or not.

Times are small numbers here: the settling time is 60, an hour is 3600.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents import alarm_message
from solocron.model.documents.alarm import TURN, Bounds, take_turn
from solocron.model.documents.alarm_message import (
    Delivery,
    Finding,
    MessagePhase,
    MessageStep,
    OpenAlarm,
    decide,
    read,
    record_delivery,
)
from solocron.model.documents.alarm_text import cleared, in_order, raised

SETTLE, HOUR, EVERY = 60, 3_600, 30
BOUNDS = Bounds(every=EVERY, late=1, failing=1, patience=0, settle=SETTLE, rate=(3, HOUR))
NAME = alarm_message.document_of("late")


def member(subject: str, began: int) -> OpenAlarm:
    return OpenAlarm(subject=subject, detail="why", since=began, began=began)


@dataclass
class OneKind:
    """The document of one kind, and what its nodes have told."""

    doc: SmallDocument | Absent = field(default_factory=lambda: Absent(Kind.ALARM, NAME))
    told: list[tuple[int, MessageStep]] = field(default_factory=list)
    watched_since: int = 0

    def look(
        self, at: int, *members: OpenAlarm, hidden: Sequence[OpenAlarm] = (), delivered: bool = True, written: int = 0
    ) -> None:
        """Look at a time; the write follows `written` later, or after the next look."""
        finding = Finding(seen=at, watched_since=self.watched_since, members=members, hidden=hidden)
        self.write(finding, at + written, delivered=delivered)

    def write(self, finding: Finding, now: int, *, delivered: bool = True) -> None:
        change = decide(self.doc, finding, bounds=BOUNDS, now=now, token=f"t{now}", by="n")
        if change is None:
            return
        assert isinstance(change.doc, SmallDocument)
        self.doc = change.doc
        if change.answer is not None:
            self.told.append((finding.seen, change.answer))
            if delivered:
                self.deliver(Delivery.DONE)

    def deliver(self, delivery: Delivery) -> None:
        change = record_delivery(self.doc, delivery, token=read(self.doc).token)
        assert change is not None
        assert isinstance(change.doc, SmallDocument)
        self.doc = change.doc

    def steps(self) -> list[str]:
        return [str(step) for _, step in self.told]


def looks(kind: OneKind, first: int, last: int, *members: OpenAlarm, **more: Any) -> None:
    for at in range(first, last + 1, EVERY):
        kind.look(at, *members, **more)


# --- settling --------------------------------------------------------------------------------------------------------


def test_what_passes_within_the_settling_time_is_never_told() -> None:
    kind = OneKind()
    looks(kind, 1000, 1050, member("a", 1000))
    looks(kind, 1060, 2000)
    assert kind.told == []
    assert read(kind.doc).phase is MessagePhase.QUIET


def test_three_hundred_jobs_that_come_one_after_the_other_are_one_message() -> None:
    kind = OneKind()
    crowd = [member(f"job-{number:03}", 900) for number in range(300)]
    for number, at in enumerate(range(1000, 1000 + 30 * 300, EVERY), 1):
        kind.look(at, *crowd[:number])
    assert kind.steps() == ["raised"]
    assert read(kind.doc).count == 300
    looks(kind, 20_000, 20_100)
    assert kind.steps() == ["raised", "cleared"]


def test_a_return_of_the_store_begins_the_settling_anew() -> None:
    kind = OneKind()
    kind.look(1000, member("a", 990))
    kind.watched_since = 1300  # no node looked for five minutes
    kind.look(1300, member("a", 990))
    assert kind.told == [], "it was pending for long enough, but the fleet was blind"
    kind.look(1360, member("a", 990))
    assert kind.told == [(1360, MessageStep.RAISED)]


def test_a_fleet_that_crashes_again_and_again_is_told_of_all_the_same() -> None:
    """Each of its looks comes after a pause: settling is begun anew three times, and no more."""
    kind = OneKind()
    for number in range(6):
        kind.watched_since = 1000 + 300 * number
        kind.look(kind.watched_since, member("a", 990))
    assert kind.told[0] == (1000 + 4 * 300, MessageStep.RAISED)


def test_it_is_cleared_only_when_all_of_it_has_been_gone_for_as_long() -> None:
    kind = OneKind()
    looks(kind, 1000, 1060, member("a", 990))
    kind.look(1090)
    kind.look(1120, member("b", 1060))
    looks(kind, 1150, 1200)
    assert kind.steps() == ["raised"], "it flickered"
    looks(kind, 1210, 1270)
    assert kind.steps() == ["raised", "cleared"]


# --- the rate, and what is told again --------------------------------------------------------------------------------


def test_what_flickers_is_told_three_times_an_hour() -> None:
    kind = OneKind()
    for number in range(20):
        begin = 10_000 + 300 * number
        looks(kind, begin, begin + 90, member("a", begin))
        looks(kind, begin + 120, begin + 270)
    inside = [step for at, step in kind.told if at < 10_000 + HOUR]
    assert inside.count(MessageStep.RAISED) == 3
    assert inside.count(MessageStep.CLEARED) == 3
    assert kind.steps().count("raised") > 3, "the next hour has its own"


def test_trouble_that_began_before_the_message_is_not_told_again_after_it() -> None:
    """The straggler of an outage: its document was read, or its slots were decided, after the others'."""
    kind = OneKind()
    looks(kind, 1000, 1060, member("a", 900))
    looks(kind, 1090, 1200)
    looks(kind, 1230, 1500, member("straggler", 950))
    assert kind.steps() == ["raised", "cleared"]
    looks(kind, 1060 + HOUR, 1060 + HOUR + 120, member("straggler", 950))
    assert kind.steps() == ["raised", "cleared", "raised"], "what is still there after an hour is told"


def test_a_job_that_joins_an_open_kind_later_is_told_once_an_hour() -> None:
    kind = OneKind()
    looks(kind, 1000, 2000, member("a", 990))
    looks(kind, 2010, 1060 + HOUR - 1, member("a", 990), member("b", 2000))
    assert kind.steps() == ["raised"]
    looks(kind, 1060 + HOUR, 1060 + 3 * HOUR, member("a", 990), member("b", 2000))
    assert kind.steps() == ["raised", "raised again"]


@pytest.mark.parametrize(
    ("delivery", "after"), [(Delivery.REFUSED, HOUR // 3), (Delivery.DOUBTFUL, HOUR), (Delivery.UNKNOWN, HOUR)]
)
def test_a_message_that_may_not_have_arrived_is_repeated_while_the_trouble_stays(
    delivery: Delivery, after: int
) -> None:
    kind = OneKind()
    looks(kind, 1000, 1060, member("a", 990), delivered=False)
    if delivery is not Delivery.UNKNOWN:
        kind.deliver(delivery)
    kind.look(1059 + after, member("a", 990))
    assert kind.steps() == ["raised"]
    kind.look(1060 + after, member("a", 990))
    assert kind.steps() == ["raised", "raised again"]


def test_a_message_that_is_refused_is_repeated_within_the_rate() -> None:
    kind = OneKind()
    for begin in (1000, 1500, 2000):
        looks(kind, begin, begin + 90, member("a", begin), delivered=begin < 2000)
        if begin < 2000:
            looks(kind, begin + 120, begin + 240)
    kind.deliver(Delivery.REFUSED)
    looks(kind, 2100, 1060 + HOUR - 1, member("a", 2000))
    assert kind.steps().count("raised again") == 0, "three were raised in this hour"
    looks(kind, 1060 + HOUR, 1060 + HOUR, member("a", 2000))
    assert kind.steps().count("raised again") == 1


def test_the_delivery_of_an_older_message_changes_nothing() -> None:
    kind = OneKind()
    looks(kind, 1000, 1060, member("a", 990), delivered=False)
    assert record_delivery(kind.doc, Delivery.DONE, token="another") is None


# --- silences --------------------------------------------------------------------------------------------------------


def test_a_silence_ends_a_message_without_a_word_and_what_is_left_after_it_is_told() -> None:
    kind = OneKind()
    looks(kind, 1000, 1060, member("a", 990))
    looks(kind, 1090, 1300, hidden=[member("a", 990)])
    assert kind.steps() == ["raised"], "not cleared: it is not over"
    looks(kind, 1330, 1390, member("a", 990))
    assert kind.steps() == ["raised", "raised"]


def test_a_silence_of_what_was_not_told_does_not_keep_a_message_from_being_cleared() -> None:
    kind = OneKind()
    looks(kind, 1000, 1060, member("a", 990))
    looks(kind, 1090, 1180, hidden=[member("b", 1070)])
    assert kind.steps() == ["raised", "cleared"]


def test_what_is_over_while_it_is_silenced_is_never_cleared() -> None:
    kind = OneKind()
    looks(kind, 1000, 1060, member("a", 990))
    kind.look(1090, hidden=[member("a", 990)])
    looks(kind, 1120, 2000)
    assert kind.steps() == ["raised"]


# --- the words -------------------------------------------------------------------------------------------------------


def test_a_message_names_what_it_is_about() -> None:
    crowd = [member(f"job-{number}", 990) for number in range(5)]
    assert raised("late", crowd[:1], again=False) == "late: job-0: why"
    assert (
        raised("late", crowd, again=False) == "late: 5 jobs, such as job-0, job-1, job-2; `solocron alarms` lists them"
    )
    assert (
        raised("no node", crowd[:2], again=True) == "still no node: 2 pools: job-0, job-1; `solocron alarms` lists them"
    )
    owned = [replace(one, owner=owner, runbook="https://wiki") for one, owner in zip(crowd, "abaab", strict=True)]
    assert raised("late", owned[:1], again=False) == "late: job-0: why; owner: a; runbook: https://wiki"
    assert raised("late", owned, again=False).endswith("; owners: a, b; `solocron alarms` lists them")
    kind = OneKind()
    looks(kind, 1000, 1060, *crowd)
    assert cleared("late", read(kind.doc)).startswith("late is over: 5 jobs, such as job-0, job-1, job-2, after ")


def test_a_later_message_names_first_what_has_joined_since() -> None:
    crowd = [member("a", 990), member("b", 990), member("z", 5000)]
    assert [one.subject for one in in_order(crowd, again=False)] == ["a", "b", "z"]
    assert [one.subject for one in in_order(crowd, again=True)] == ["z", "a", "b"]


# --- whatever happens ------------------------------------------------------------------------------------------------


@st.composite
def outages(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[tuple[int, int, bool]], list[tuple[int, int]]]:
    """Jobs with the time at which each is found and is well again; looks with their delays; times without a look."""
    jobs = draw(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 1_500)), min_size=1, max_size=12))
    times = draw(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 90), st.booleans()), min_size=1, max_size=80))
    away = draw(st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 500)), max_size=3))
    return [(1_000 + found, 1_000 + found + lasts) for found, lasts in jobs], times, away


@given(outages())
def test_one_outage_is_at_most_one_raised_and_one_cleared(
    outage: tuple[list[tuple[int, int]], list[tuple[int, int, bool]], list[tuple[int, int]]],
) -> None:
    """Jobs are found and recover at any time, nodes look at any time, write late, or die before they write."""
    jobs, times, away = outage
    kind, turn = OneKind(), _Turns()
    at, pending = 1_000, list[tuple[int, Finding]]()
    for pause, delay, dies in [*times, *[(EVERY, 0, False)] * 100]:
        at += pause
        if any(begin <= at - 1_000 < begin + lasts for begin, lasts in away):
            continue
        for now, finding in [one for one in pending if one[0] <= at]:
            kind.write(finding, now)
        pending = [one for one in pending if one[0] > at]
        members = [member(f"{number}", 999) for number, (since, until) in enumerate(jobs) if since <= at < until]
        watched = turn.take(at)
        if watched is not None and not dies:
            pending.append((at + delay, Finding(seen=at, watched_since=watched, members=members)))
    assert kind.steps() in ([], ["raised"], ["raised", "cleared"])
    last = max(until for _, until in jobs)
    assert read(kind.doc).phase is MessagePhase.QUIET or at < last + 2 * SETTLE, "in the end all is quiet"
    for told_at, step in kind.told:
        if step is MessageStep.RAISED:
            assert any(since + SETTLE <= told_at for since, _ in jobs), "nothing is raised before it has settled"


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20_000), st.integers(1, 4_000)), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 3_000)), max_size=3),
)
def test_never_more_messages_than_the_rate_and_raised_and_cleared_alternate(
    troubles: Sequence[tuple[int, int, int]], silences: Sequence[tuple[int, int]]
) -> None:
    kind = OneKind()
    for at in range(EVERY, 30_000, EVERY):
        open_ = [member(str(job), begin) for job, begin, lasts in troubles if begin <= at < begin + lasts]
        silenced = any(begin <= at < begin + lasts for begin, lasts in silences)
        kind.look(at, *(() if silenced else open_), hidden=open_ if silenced else ())
    up = [told_at for told_at, step in kind.told if step is not MessageStep.CLEARED]
    assert all(sum(0 <= other - first < HOUR for other in up) <= 3 for first in up)
    phase = MessagePhase.QUIET
    for _, step in kind.told:
        if step is MessageStep.CLEARED or step is MessageStep.AGAIN:
            assert phase is MessagePhase.RAISED
        phase = MessagePhase.QUIET if step is MessageStep.CLEARED else MessagePhase.RAISED
    for job, begin, lasts in troubles:
        free = not any(begin < end + lasts_ and end < begin + lasts for end, lasts_ in silences)
        if lasts >= HOUR + 2 * SETTLE + 2 * EVERY and free:
            assert any(begin <= told_at <= begin + lasts for told_at in up), f"{job} was never told"


class _Turns:
    """The document by which nodes take turns."""

    def __init__(self) -> None:
        self._doc: SmallDocument | Absent = Absent(Kind.ALARM, TURN)

    def take(self, at: int) -> int | None:
        change = take_turn(self._doc, by="n", every=EVERY, now=at)
        if change is None:
            return None
        assert isinstance(change.doc, SmallDocument)
        self._doc = change.doc
        return int(change.answer.watched_since)
