"""Documents of every shape, for hypothesis: as stores keep them, and stranger ones that nothing forbids."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from solocron.clock import SECOND
from solocron.model._fast.values import replace
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import (
    GIVEN_WAY,
    Back,
    Hold,
    Job,
    Last,
    Missed,
    Pause,
    Request,
    WaitingRange,
    WaitingRun,
)
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin, Shards, Status
from solocron.model.documents.session import Life, Session
from solocron.model.policy import Backoff, CatchUp, Overlap, allow
from solocron.model.transitions.shards import cut
from solocron.schedules import At, Bounded, Cron, Every, Schedule, dump, spread
from tests.unit.model.one_job import T0

__all__ = ["definitions", "holds", "jobs", "notes", "schedules", "sessions"]

DAY = 86_400 * SECOND

# Sampled where that is enough: a document has some eighty values, and drawing each from a rich strategy costs 30 ms.
texts = st.sampled_from(["", "x", "größer", 'quoted "text"', "two\nlines", "\x00\u2028", "emoji \U0001f552", "null"])
names = st.sampled_from(["work", "a", "b.c", "A:1-2_3", "n" * 40])
instants = st.integers(T0 - DAY, T0 + DAY)
fences = st.integers(0, 2**53)
values = st.sampled_from(
    [None, None, 0, False, "", -1, 2**53, 0.1, 1e300, "text", [], {}, [None], {"a": None}, {"a": [1, {"b": "ü"}]}]
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


schedules: st.SearchStrategy[Schedule | None] = st.sampled_from(
    [
        None,
        Every("7s"),
        Every("1m"),
        Every("1h"),
        Cron("*/5 * * * *"),
        Cron("30 2 * * *", tz="America/New_York"),
        Cron("0 9 * * 1-5", tz="Europe/Paris", dst={"fold": "both"}),
        spread(Every("10m"), "5m", "work"),
        At(datetime(2026, 1, 5, 1, tzinfo=UTC)),
        Bounded(Every("1m"), "2026-01-05T00:10:00Z", "2026-01-05T01:00:00Z"),
        Bounded(Cron("*/5 * * * *", tz="Europe/Paris"), ends="2026-01-05"),
    ]
)
overlaps = st.sampled_from([Overlap.parse(kind) for kind in ("skip", "queue", "queue-all", "replace")]) | st.builds(
    allow, st.integers(1, 9)
)
catch_ups = st.sampled_from([CatchUp("skip"), CatchUp("latest"), CatchUp("all")]) | st.builds(
    CatchUp,
    st.just("all"),
    maybe(st.integers(1, 9)),
    maybe(st.integers(0, DAY)),
    maybe(st.integers(1, 60 * SECOND)),
)
backoffs = st.builds(
    Backoff,
    first=st.floats(0, 60),
    factor=st.floats(1, 5),
    cap=st.floats(0, 600),
    jitter=st.floats(0, 1),
)


shards = st.sampled_from([None, None, 1, 3, ("eu", "us")])


offers = st.builds(
    Offer,
    carrier=names,
    since=instants,
    tries=st.integers(1, 9),
    until=maybe(instants),
    follows=st.booleans(),
    note=maybe(texts),
)


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    schedule = draw(schedules)
    return Definition(
        handler=draw(names),
        schedule=None if schedule is None else dump(schedule),
        pool=draw(names),
        payload=draw(values),
        timeout=draw(maybe(st.integers(0, DAY))),
        retries=draw(st.integers(0, 3)),
        backoff=draw(backoffs),
        on_crash=draw(st.sampled_from(["retry", "fail"])),
        overlap=draw(overlaps),
        catch_up=draw(catch_ups),
        start_within=draw(maybe(st.integers(0, DAY))),
        pause_after=draw(maybe(st.integers(1, 4))),
        enabled=draw(st.booleans()),
        shards=draw(shards),
        nodes=draw(st.sampled_from([None, None, 1, 3, "all"])),
        prefer=draw(st.sampled_from([None, "last"])),
        limit=draw(st.sampled_from([None, "db:2"])),
        tags=draw(st.sampled_from([(), ("eu", "money")])),
        owner=draw(st.sampled_from([None, "billing"])),
        application=draw(st.sampled_from([None, "billing", "reports"])),
        hand_over=draw(st.sampled_from([None, None, {}, {"queue": "cron", "priority": 5}])),
    )


holds = st.builds(
    Hold,
    run=names,
    slot=instants,
    origin=st.sampled_from(Origin),
    attempt=st.integers(1, 9),
    tries=st.integers(0, 3),
    session=st.sampled_from(["s1", "s2"]),
    node=names,
    fence=fences,
    claimed_at=instants,
    deadline=maybe(instants),
    request=maybe(texts),
    payload=values,
    cancel=maybe(texts),
    asked_by=maybe(texts),
    note=maybe(texts),
    crashed=st.booleans(),
    shard=st.sampled_from([None, 0, "eu"]),
    shards=shards,
    only=maybe(names),
    among=st.sampled_from([(), ("a", "b")]),
    permit=st.sampled_from([None, "db:0"]),
    final=st.booleans(),
    offer=st.none() | st.none() | offers,
)


def _cut(waiting_run: WaitingRun, shards: Shards | None, more: int) -> WaitingRun:
    """Some of them as rows of shards, in whatever state."""
    row = cut(waiting_run, shards)
    return replace(row, more=min(more, row.more))


waiting_run = st.builds(
    _cut,
    st.builds(
        WaitingRun,
        run=names,
        slot=instants,
        origin=st.sampled_from(Origin),
        ready_at=instants,
        attempt=st.integers(1, 9),
        tries=st.integers(0, 3),
        request=maybe(texts),
        payload=values,
        crashed=st.booleans(),
        only=maybe(names),
        among=st.sampled_from([(), ("a", "b")]),
        offer=st.none() | st.none() | offers,
    ),
    shards,
    st.integers(0, 2),
)


@st.composite
def waiting_ranges(draw: st.DrawFn) -> WaitingRange:
    first = draw(instants)
    schedule = draw(schedules)
    return WaitingRange(
        first=first,
        last=first + draw(st.integers(0, DAY)),
        count=draw(st.integers(1, 5_000)),
        origin=draw(st.sampled_from(Origin)),
        request=draw(maybe(texts)),
        schedule=None if schedule is None else dump(schedule),
        pace=draw(maybe(st.integers(1, 60 * SECOND))),
        asked_by=draw(maybe(texts)),
        note=draw(maybe(texts)),
        trace=draw(maybe(texts)),
    )


def rows(strategy: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    return Job(
        name=draw(names),
        incarnation=draw(instants),
        definition=draw(definitions()),
        revision=draw(maybe(st.integers(0, 99))),
        source=draw(maybe(names | st.just(GIVEN_WAY))),
        zone_data=draw(st.sampled_from(["", "2025b", "2026f"])),
        place=draw(maybe(texts)),
        defined_at=draw(maybe(instants)),
        removed=draw(st.booleans()),
        cursor=draw(instants),
        nominal=draw(st.sampled_from([None, "2026-01-04T02:30:00", "2026-10-25T02:30:00#1"])),
        due_at=draw(maybe(instants)),
        paused=draw(maybe(st.builds(Pause, at=instants, by=maybe(texts), note=maybe(texts), until=maybe(instants)))),
        fence=draw(fences),
        active=draw(rows(holds)),
        waiting_runs=draw(rows(waiting_run)),
        waiting_ranges=draw(rows(waiting_ranges())),
        requests=draw(rows(st.builds(Request, id=texts, answer=texts))),
        accepted=draw(rows(fences, 4)),
        failures=draw(st.integers(0, 9)),
        paced=draw(st.sampled_from([0, T0])),
        last=draw(
            maybe(
                st.builds(
                    Last,
                    run=names,
                    slot=instants,
                    attempt=st.integers(1, 9),
                    status=st.sampled_from(Status),
                    finished_at=instants,
                    error=maybe(texts),
                    node=maybe(names),
                )
            )
        ),
        missed=draw(maybe(st.builds(Missed, at=instants, first=instants, last=instants, count=st.integers(1, 99)))),
        back=draw(maybe(st.builds(Back, epoch=names, fence=fences, cursor=instants, told=st.just(())))),
        extra=draw(st.dictionaries(st.sampled_from(["XX", "later"]), values, max_size=2)),
    )


sessions = st.builds(
    Session,
    name=names,
    node=names,
    host=texts,
    pid=st.integers(0, 2**22),
    pools=rows(names),
    handlers=maybe(rows(names)),
    applications=st.sampled_from([(), (("billing", None),), (("billing", None), ("reports", ("work", "a")))]),
    version=texts,
    fingerprint=texts,
    revision=maybe(st.integers(0, 99)),
    zone_data=texts,
    lease=st.integers(1, DAY),
    started_at=instants,
    expires_at=instants,
    running=st.integers(0, 99),
    state=st.sampled_from(Life),
    ended_at=maybe(instants),
    reason=maybe(texts),
)
notes = st.builds(
    SmallDocument,
    kind=st.sampled_from([Kind.LOCK, Kind.KEY, Kind.STEP, Kind.CALENDAR]),
    name=names,
    body=st.dictionaries(texts, values, max_size=3),
    session=maybe(names),
    expires_at=maybe(instants),
)
