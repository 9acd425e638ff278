"""A session lives until it is buried, dies once, and is swept once; no renewal, late or not, ever revives it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.session import (
    PROGRESS_BYTES,
    Life,
    Session,
    begin,
    bury,
    end,
    is_live,
    progress_of,
    renew,
    swept,
    trimmed_progress,
)
from tests.unit.model.one_job import T0

LEASE = 15 * SECOND
GONE = Absent(Kind.SESSION, "s1")
NEW = Session(name="s1", node="a", host="h", pid=1, lease=LEASE)


def live(expires_at: int = T0 + LEASE) -> Session:
    return replace(NEW, started_at=T0, expires_at=expires_at)


def dead() -> Session:
    return replace(live(), state=Life.DEAD, ended_at=T0, reason="x")


def made(change: Change | None) -> Session:
    assert change is not None
    assert isinstance(change.doc, Session)
    return change.doc


def test_it_begins_with_a_whole_lease_by_the_stores_clock() -> None:
    session = made(begin(GONE, NEW, now=T0))
    assert (session.started_at, session.expires_at, session.state) == (T0, T0 + LEASE, Life.LIVE)


@pytest.mark.invariant("I13: a repeated request has no second effect")
def test_beginning_again_after_a_lost_reply_is_the_same_session() -> None:
    assert made(begin(live(), NEW, now=T0 + 5)) == live()


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
@pytest.mark.parametrize("state", [Life.DEAD, Life.SWEPT])
def test_a_buried_one_cannot_begin_again(state: Life) -> None:
    assert begin(replace(live(), state=state), NEW, now=T0) is None


def test_a_renewal_sets_the_expiry_and_never_adds_to_it() -> None:
    session = made(renew(live(), now=T0 + SECOND, running=3))
    assert (session.expires_at, session.running) == (T0 + SECOND + LEASE, 3)
    assert made(renew(session, now=T0 + SECOND)).expires_at == T0 + SECOND + LEASE


def test_a_renewal_sets_the_expiry_by_the_stores_clock_wherever_that_has_stepped_to() -> None:
    renewed = made(renew(live(), now=T0 - 60 * SECOND))
    assert renewed.expires_at == T0 - 60 * SECOND + LEASE
    assert renewed.beats == live().beats + 1, "so that a watcher sees it renewed even where the expiry looks the same"


def test_a_late_renewal_counts_as_long_as_nobody_buried_it() -> None:
    assert made(renew(live(), now=T0 + 3 * LEASE)).expires_at == T0 + 4 * LEASE


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
@pytest.mark.parametrize("state", [Life.DEAD, Life.SWEPT])
def test_a_renewal_never_revives(state: Life) -> None:
    assert renew(replace(live(), state=state), now=T0) is None


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_a_renewal_of_a_pruned_session_does_not_bring_it_back() -> None:
    assert renew(GONE, now=T0) is None


def test_it_is_live_up_to_the_very_instant_of_its_expiry() -> None:
    assert is_live(live(), now=T0 + LEASE - 1)
    assert not is_live(live(), now=T0 + LEASE)
    assert not is_live(dead(), now=T0)


def test_progress_rides_with_the_renewal_and_stays_until_it_is_swept() -> None:
    told = (("j@1", 7, '{"done":1}'),)
    change = renew(live(), now=T0, progress=told)
    assert change is not None
    assert isinstance(change.doc, Session)
    assert progress_of(change.doc) == {("j@1", 7): '{"done":1}'}
    again = renew(change.doc, now=T0 + 1)
    assert again is not None
    assert isinstance(again.doc, Session)
    assert again.doc.progress == told, "a renewal that reports nothing keeps it"
    buried = bury(again.doc, now=T0 + 2, reason="x")
    assert buried is not None
    assert progress_of(buried.doc) == progress_of(again.doc)  # type: ignore[arg-type]
    over = swept(buried.doc, now=T0 + 3)  # type: ignore[arg-type]
    assert over is not None
    assert progress_of(over.doc) == {}  # type: ignore[arg-type]


@given(
    st.dictionaries(
        st.sampled_from(["done", "total", "note", "output"]),
        st.text(max_size=2_000) | st.integers() | st.floats(allow_nan=False),
    )
)
def test_the_progress_of_a_run_is_small_json_whatever_it_reports(progress: dict[str, Any]) -> None:
    text = trimmed_progress(progress)
    assert len(text) <= PROGRESS_BYTES
    assert text.isascii()
    read = json.loads(text)
    for name, value in read.items():
        whole = progress[name]
        assert whole.endswith(value) if isinstance(whole, str) else value == whole
    if len(json.dumps(progress, separators=(",", ":"))) <= PROGRESS_BYTES:
        assert read == progress


def test_what_a_run_printed_is_shortened_before_its_note() -> None:
    text = trimmed_progress({"done": 3, "total": 9, "note": "third of nine", "output": "line\n" * 500})
    read = json.loads(text)
    assert (read["done"], read["note"]) == (3, "third of nine")
    assert read["output"].endswith("line\n")
    assert len(text) > PROGRESS_BYTES - 20


def test_burial_is_for_one_that_is_unchanged_since_it_was_seen_to_expire() -> None:
    over, seen = T0 + LEASE, live().beats
    assert bury(live(), now=over - 1, reason="x", seen=seen) is None, "not over yet"
    renewed = replace(live(), beats=seen + 1)
    assert bury(renewed, now=over + 60 * SECOND, reason="x", seen=seen) is None, "renewed since"
    buried = made(bury(live(), now=over, reason="not renewed", seen=seen))
    assert (buried.state, buried.ended_at, buried.reason) == (Life.DEAD, over, "not renewed")


def test_a_node_may_bury_its_own_old_session_at_once() -> None:
    assert made(bury(live(), now=T0 + 1, reason="its node gave it up")).state is Life.DEAD


@pytest.mark.parametrize("doc", [GONE, dead(), replace(dead(), state=Life.SWEPT)])
def test_it_dies_once(doc: Session | Absent) -> None:
    assert bury(doc, now=T0 + 9 * LEASE, reason="x") is None
    assert end(doc, now=T0 + 9 * LEASE, reason="x") is None


def test_only_a_dead_one_is_swept_and_only_once() -> None:
    assert swept(live(), now=T0) is None
    assert swept(GONE, now=T0) is None
    done = made(swept(dead(), now=T0))
    assert done.state is Life.SWEPT
    assert swept(done, now=T0) is None


def test_a_node_that_closes_its_session_leaves_the_rest_to_the_sweep() -> None:
    ended = made(end(live(), now=T0 + SECOND, reason="stopped"))
    assert (ended.state, ended.expires_at, ended.reason) == (Life.DEAD, T0 + SECOND, "stopped")
    assert end(ended, now=T0 + 2 * SECOND, reason="again") is None
