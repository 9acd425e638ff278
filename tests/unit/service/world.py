"""A fixed fleet at a fixed instant, as views: what the pages are made of in tests and in pictures."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from solocron.calendars.views import CalendarView
from solocron.effects.locks.listing import LockView
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.service.pages.fleet import RefusedResult, SlotToCome
from solocron.service.pages.links import Links
from solocron.service.pages.overview import Sums
from solocron.service.pages.slots import SlotFate
from solocron.service.pages.words import Reading
from solocron.stores.contract import Check
from solocron.views import (
    AlarmsView,
    AlarmView,
    AuditView,
    FactView,
    HoldView,
    JobView,
    LimitView,
    MessageView,
    NodeView,
    PauseView,
    PermitView,
    RefusedEndView,
    RunView,
    SilenceView,
    WhyView,
)

NOW = datetime(2026, 11, 16, 3, 12, 47, tzinfo=UTC)
UTC_READING = Reading(now=NOW, zone=UTC, zone_name="UTC")
VIENNA = Reading(now=NOW, zone=ZoneInfo("Europe/Vienna"), zone_name="Vienna")
LINKS = Links("/a/b", "3f9a")


def at(clock: str, day: int = 16) -> datetime:
    hours, minutes, *seconds = clock.split(":")
    second = float(seconds[0]) if seconds else 0.0
    whole = datetime(2026, 11, day, int(hours), int(minutes), int(second), tzinfo=UTC)
    return whole + timedelta(seconds=second % 1)


def run_view(job: str, slot: datetime, **changes: Any) -> RunView:
    values: dict[str, Any] = {
        "run": f"{job}@{int(slot.timestamp() * 1_000_000):016x}",
        "job": job,
        "slot": slot,
        "attempt": 1,
        "status": "succeeded",
        "reason": None,
        "node": "worker-a",
        "fence": 1_794_000_000_000 + int(slot.timestamp()) % 10_000_000,
        "origin": "schedule",
        "key": f"{job}/{slot:%Y-%m-%dT%H:%M:%SZ}",
        "claimed_at": slot + timedelta(milliseconds=210),
        "started_at": slot + timedelta(milliseconds=230),
        "finished_at": slot + timedelta(seconds=30),
        "error": None,
        "result": None,
        "progress": None,
        "output": None,
        "first": slot,
        "count": 1,
        "shard": None,
    }
    return RunView(**(values | changes))


def hold_view(run: RunView, **changes: Any) -> HoldView:
    """What the hold of a running attempt says."""
    values = {field.name: getattr(run, field.name) for field in fields(RunView)}
    return HoldView(**(values | {"session": f"{run.node}-7f3a", "lease_left_s": 11.0} | changes))


def not_run(job: str, slot: datetime, status: str, reason: str, **changes: Any) -> RunView:
    none = dict.fromkeys(("node", "claimed_at", "started_at", "finished_at"))
    return run_view(job, slot, attempt=0, fence=0, status=status, reason=reason, **(none | changes))


def node_view(name: str, **changes: Any) -> NodeView:
    values: dict[str, Any] = {
        "node": name,
        "session": f"{name}-7f3a",
        "host": name,
        "pid": 4_211,
        "pools": ("default",),
        "version": "0.2.0",
        "zone_data": "2026b",
        "revision": 118,
        "state": "live",
        "started_at": at("09:00", 14),
        "expires_at": NOW + timedelta(seconds=11),
        "ended_at": None,
        "running": 1,
        "max_running": 32,
        "reason": None,
        "lease": timedelta(seconds=15),
        "last_renewal": NOW - timedelta(seconds=4),
        "buried_by": None,
        "skew_s": 0.003,
        "late_s": 0.0,
        "late_at": None,
        "refused": (),
    }
    return NodeView(**(values | changes))


def job_view(name: str, **changes: Any) -> JobView:
    values: dict[str, Any] = {
        "name": name,
        "schedule": "At minute 15 of every hour",
        "zone": "Europe/Vienna",
        "handler": name.replace(".", ":"),
        "application": "billing",
        "pool": "default",
        "enabled": True,
        "next": at("03:15").astimezone(ZoneInfo("Europe/Vienna")),
        "due_at": at("03:15"),
        "cursor": at("02:15"),
        "paused": None,
        "pauses": (),
        "running": (),
        "waiting": 0,
        "waits": (),
        "failures": 0,
        "last_status": "succeeded",
        "last_slot": at("02:15").astimezone(ZoneInfo("Europe/Vienna")),
        "last_error": None,
        "revision": 118,
        "orphaned": False,
        "retries": 3,
        "overlap": Overlap.parse("skip"),
        "catch_up": CatchUp.parse("latest"),
        "shards": None,
        "nodes": None,
        "prefer": None,
        "limit": None,
        "expression": "15 * * * *",
        "spec": {"kind": "cron"},
        "dst": None,
        "calendar": None,
        "on_holiday": None,
        "spread": None,
        "starts": None,
        "ends": None,
        "payload": None,
        "timeout": timedelta(minutes=20),
        "start_within": None,
        "backoff": Backoff(),
        "on_crash": "retry",
        "on_lost": "stop",
        "on_stuck": "wait",
        "pause_after": None,
        "run_in": "thread",
        "hand_over": None,
        "memory": None,
        "cpu": None,
        "tags": (),
        "owner": None,
        "runbook": None,
        "place": "billing/jobs/usage.py:41",
        "created_at": at("09:00", 1),
        "defined_at": at("09:00", 14),
        "defined_by": None,
        "defined_note": None,
        "resumed_at": None,
        "resumed_by": None,
        "resumed_note": None,
        "declared": True,
    }
    # An option that is not set is None, also one that came after these lines.
    return JobView(**(dict.fromkeys(field.name for field in fields(JobView)) | values | changes))


def nodes() -> tuple[NodeView, ...]:
    late = RefusedEndView(run=TAKEN, fence=1_794_795_300_212, at=at("02:37:02.4"), outcome="succeeded")
    return (
        node_view("worker-a"),
        node_view("worker-b", skew_s=-0.002, expires_at=NOW + timedelta(seconds=9)),
        node_view("worker-c", running=0, zone_data="2025c", skew_s=0.001, refused=(late,)),
        node_view("worker-d", skew_s=1.4, expires_at=NOW + timedelta(seconds=6)),
        node_view("api-3", started_at=at("02:59:40"), running=0, max_running=8, pools=("default", "eu")),
        node_view(
            "api-2",
            state="ended",
            ended_at=at("02:58:12"),
            reason="lease ran out",
            buried_by="worker-b",
            last_renewal=at("02:57:57"),
            running=0,
            skew_s=None,
        ),
    )


def earlier(node: NodeView) -> tuple[NodeView, ...]:
    """The sessions before that of a node, on its host: one that was closed and one that was buried."""
    return (
        node_view(
            node.node,
            session=f"{node.node}-5c11",
            state="ended",
            started_at=at("08:00", 12),
            ended_at=at("08:59:40", 14),
            version="0.1.9",
            revision=117,
            pid=3_980,
        ),
        node_view(
            node.node,
            session=f"{node.node}-1b07",
            state="ended",
            started_at=at("07:30", 11),
            ended_at=at("07:41:03", 12),
            reason="its lease ran out",
            buried_by="worker-a",
            version="0.1.9",
            revision=116,
            pid=2_114,
        ),
    )


TAKEN = "usage.rollup@0006436d8e5a1b00"
LOST = run_view(
    "usage.rollup",
    at("02:15"),
    run=TAKEN,
    node="worker-c",
    status="lost",
    fence=1_794_795_300_212,
    reason="its lease ran out, buried by worker-b",
    finished_at=at("02:34:31"),
)
SECOND = run_view(
    "usage.rollup",
    at("02:15"),
    run=TAKEN,
    attempt=2,
    node="worker-a",
    fence=1_794_796_471_083,
    reason="taken over",
    claimed_at=at("02:34:31.04"),
    started_at=at("02:34:31.1"),
    finished_at=at("02:41:07.3"),
)
REFUSED = RefusedResult(node="worker-c", run=TAKEN, fence=1_794_795_300_212, at=at("02:37:02.4"), outcome="succeeded")
INVOICES = "invoices.generate@0006436d8f30aa00"
TRACE = """Traceback (most recent call last):
  File "billing/jobs/dunning.py", line 88, in send
    smtp.sendmail(sender, [one.address], text)
  File "smtplib.py", line 876, in sendmail
    raise SMTPServerDisconnected("Connection unexpectedly closed")
smtplib.SMTPServerDisconnected: Connection unexpectedly closed"""


def runs() -> tuple[RunView, ...]:
    """An hour of the fleet: long attempts, short ones, failures, two takeovers, three that run."""
    long = (
        run_view("tax.export", at("02:12"), finished_at=at("02:26:10")),
        run_view("archive.move", at("02:08"), node="worker-b", finished_at=at("02:31")),
        LOST,
        SECOND,
        run_view("fx.rates", at("02:40"), node="worker-b", finished_at=at("02:46:20")),
        run_view("ledger.close", at("02:20"), node="worker-d", finished_at=at("02:43:40")),
        run_view("search.reindex", at("02:50"), node="worker-d", finished_at=at("02:58:40")),
        run_view("subscriptions.renew", at("03:00"), node="api-3", finished_at=at("03:07:50")),
        run_view(
            "invoices.generate",
            at("02:30"),
            run=INVOICES,
            node="api-2",
            status="lost",
            fence=1_794_797_000_212,
            reason="its lease ran out",
            finished_at=at("02:58:27"),
        ),
        run_view(
            "invoices.generate",
            at("02:30"),
            run=INVOICES,
            attempt=2,
            node="worker-b",
            status="running",
            fence=1_794_798_907_441,
            claimed_at=at("02:58:27.1"),
            started_at=at("02:58:27.2"),
            finished_at=None,
            progress={"done": 8204, "total": 12_000},
        ),
        run_view("reports.daily", at("03:05"), status="running", finished_at=None, progress={"done": 61, "total": 100}),
        run_view("webhooks.flush", at("03:12"), node="worker-d", status="running", finished_at=None),
    )
    dice, short = Random(7), []
    for minute in range(10, 72):
        node = dice.choice(
            ["worker-a", "worker-b", "worker-d", "worker-c" if minute > 40 or minute < 30 else "worker-a"]
        )
        slot = at("02:00") + timedelta(minutes=minute)
        short.append(
            run_view("webhooks.flush", slot, node=node, finished_at=slot + timedelta(seconds=8 + dice.random() * 25))
        )
    for minute in (30, 45, 60):
        slot = at("02:00") + timedelta(minutes=minute)
        failed = {"status": "failed", "error": TRACE, "node": dice.choice(["worker-a", "worker-d", "worker-b"])}
        short.append(run_view("dunning.send", slot, finished_at=slot + timedelta(seconds=20), **failed))
    return tuple(sorted((*long, *short), key=lambda run: run.claimed_at or run.slot))


def queued_runs() -> tuple[RunView, ...]:
    """The hour of the fleet with two queues: one whose messages wait for seconds, one whose workers are away."""
    waiting = [
        not_run(
            job,
            slot,
            "offered",
            f"waits in {queue} since {slot:%Y-%m-%dT%H:%M:%SZ}, not picked up",
            carrier=queue,
        )
        for job, queue, slot in (
            ("mail.send", "celery:mail", at("03:12:30")),
            ("mail.digest", "celery:mail", at("03:12")),
            ("thumbs.make", "rq:images", at("02:41")),
            ("thumbs.make", "rq:images", at("02:56")),
            ("thumbs.make", "rq:images", at("03:11")),
        )
    ]
    return (*runs(), *(replace(one, attempt=1) for one in waiting))


def to_come() -> tuple[SlotToCome, ...]:
    every = [SlotToCome(job="webhooks.flush", slot=at("03:00") + timedelta(minutes=minute)) for minute in range(13, 25)]
    return (
        *every,
        *(
            SlotToCome(job=job, slot=at(when))
            for job, when in (
                ("usage.rollup", "03:15"),
                ("dunning.send", "03:15"),
                ("fx.rates", "03:20"),
                ("tax.export", "03:20"),
            )
        ),
    )


def sums(**changes: Any) -> Sums:
    dice = Random(3)
    hours = [{"succeeded": 112 + dice.randrange(16)} for _ in range(23)]
    for number, tone in ((3, "skipped"), (4, "skipped"), (14, "failed"), (21, "failed"), (22, "missed")):
        hours[number][tone] = 3
    values: dict[str, Any] = {
        "hours": 24,
        "due": 2_856,
        "counts": {"succeeded": 2_829, "running": 3, "failed": 9, "missed": 3, "skipped": 12},
        "taken_over": 2,
        "done_twice": 0,
        "unaccounted": (),
        "missing": 0,
        "left_out": {},
        "checked_jobs": 52,
        "of_jobs": 52,
        "by_hour": (*hours, {"succeeded": 61, "failed": 2}),
    }
    return Sums(**(values | changes))


def fates() -> tuple[SlotFate, ...]:
    """Twenty-four days of an hourly job in Vienna, with a clock change, a takeover, failures and skips."""
    made = []
    slot = datetime(2026, 10, 23, 22, 15, tzinfo=UTC)
    while slot < datetime(2026, 11, 16, 23, tzinfo=UTC):
        local = slot.astimezone(VIENNA.zone)
        where = (local.month, local.day, local.hour)
        values: dict[str, Any] = {"status": "succeeded" if slot < NOW else None, "attempts": 1, "took_s": 366.0}
        if slot >= NOW:
            values = {"status": None}
        elif where in ((10, 29, 13), (11, 8, 4)):
            values["attempts"] = 2
        elif where == (11, 5, 22):
            values |= {"status": "failed", "attempts": 4, "reason": "all attempts used"}
        elif where in ((11, 2, 9), (11, 2, 10), (11, 2, 11), (11, 2, 12), (11, 13, 17)):
            values |= {"status": "skipped", "reason": "the run before was still running", "took_s": None}
        elif where in ((11, 11, 1), (11, 11, 2), (11, 11, 3)):
            values |= {"status": "missed", "reason": "no live node of its pool", "took_s": None}
        elif slot == at("02:15"):
            values |= {"attempts": 2, "taken_over": True}
        elif where == (11, 12, 8):
            values["origin"] = "backfill"
        made.append(SlotFate(slot=slot, fold=where[:3] == (10, 25, 2), **values))
        slot += timedelta(hours=1)
    return tuple(made)


def usage_runs() -> tuple[RunView, ...]:
    dice, made = Random(11), [SECOND, LOST]
    for hours in range(1, 120):
        slot = at("02:15") - timedelta(hours=hours)
        took = timedelta(seconds=330 + dice.random() * 140)
        late = timedelta(seconds=0.1 + dice.random() * 0.3)
        node = dice.choice(["worker-a", "worker-b", "worker-c", "worker-d"])
        if hours == 60:
            made.append(
                not_run("usage.rollup", slot, "skipped", "the run of 16:15 was still running · overlap is skip")
            )
        elif hours == 16:
            reason = "no live node of its pool from 00:58 to 03:49 · catch-up is latest"
            made.append(not_run("usage.rollup", slot, "missed", reason, count=3, first=slot - timedelta(hours=2)))
        else:
            made.append(
                run_view(
                    "usage.rollup",
                    slot,
                    node=node,
                    claimed_at=slot + late,
                    started_at=slot + late,
                    finished_at=slot + late + took,
                )
            )
    return tuple(made)


def jobs() -> tuple[JobView, ...]:
    pause = PauseView(at=at("02:10"), by="ana", note="schema move", until=at("04:00"))
    active = runs()
    return (
        job_view("usage.rollup"),
        job_view(
            "dunning.send",
            failures=3,
            last_status="failed",
            last_error=TRACE,
            schedule="Every 15 minutes",
            expression="*/15 * * * *",
            last_slot=at("03:00"),
        ),
        job_view(
            "invoices.generate",
            running=tuple(hold_view(run) for run in active if run.run == INVOICES and run.status == "running"),
            schedule="At 02:30 every day",
            next=at("02:30", 17),
            due_at=at("02:30", 17),
        ),
        job_view("etl.load", paused=pause, next=None, due_at=None, last_slot=at("02:00")),
        job_view(
            "webhooks.flush",
            schedule="Every minute",
            expression="* * * * *",
            next=at("03:13"),
            due_at=at("03:13"),
            last_slot=at("03:11"),
            running=tuple(hold_view(run) for run in active if run.job == "webhooks.flush" and run.status == "running"),
        ),
        job_view("usage.rollup.eu", pool="eu", orphaned=True, last_status="missed"),
        job_view(
            "reports.monthly",
            last_status=None,
            last_slot=None,
            schedule="At 04:00 on day 1 of the month",
            next=at("04:00", 30),
            due_at=at("04:00", 30),
        ),
        job_view("fx.rates", enabled=False, next=None, due_at=None),
    )


def alarms() -> AlarmsView:
    return AlarmsView(
        alarms=(
            AlarmView(
                kind="failing",
                subject="dunning.send",
                detail="3 slots in a row, all attempts used: SMTPServerDisconnected",
                since=at("02:30"),
                state="told",
                owner="billing",
                runbook="https://wiki.example/dunning",
            ),
            AlarmView(
                kind="missed",
                subject="usage.rollup.eu",
                detail="3 slots, 2026-11-16T02:15:00Z to 2026-11-16T02:25:00Z; a later slot ran instead",
                since=at("02:15"),
                state="untold",
            ),
            AlarmView(
                kind="late",
                subject="etl.load",
                detail="due since 2026-11-16T03:00:00Z, and no node claimed it",
                since=at("03:00"),
                state="silenced",
                silenced_until=at("05:00"),
            ),
        ),
        messages=(
            MessageView(
                kind="failing", count=1, since=at("02:30"), raised_at=at("02:31:07"), node="worker-a", delivery="done"
            ),
        ),
        silences=(SilenceView(what="late:etl.*", until=at("05:00"), since=at("02:00"), by="ana", note="schema move"),),
    )


def limits() -> tuple[LimitView, ...]:
    permit = PermitView(permit="erp:1", node="worker-b", session="worker-b-7f3a", since=at("02:58:27"), run=INVOICES)
    return (
        LimitView(name="erp", most=1, taken=(permit,), jobs=("invoices.generate", "ledger.close"), waiting=2),
        LimitView(name="smtp", most=4, taken=(), jobs=("dunning.send",), waiting=0),
    )


def locks() -> tuple[LockView, ...]:
    forced = ({"at": at("09:12", 15), "by": "ana", "why": "its host is gone", "owner": "api-2", "fence": 17},)
    common = {"since": at("03:01"), "fence": 1_794_798_123_456, "waiting": 0, "forced": ()}
    return (
        LockView(
            name="ledger",
            state="held",
            owner="worker-a",
            until=None,
            session="worker-a-7f3a",
            **(common | {"waiting": 2}),
        ),
        LockView(
            name="migrate",
            state="free",
            owner=None,
            until=None,
            session=None,
            **(common | {"since": None, "forced": forced}),
        ),
        LockView(name="export", state="orphaned", owner="api-2", until=at("03:20"), session="api-2-7f3a", **common),
    )


def calendars() -> tuple[CalendarView, ...]:
    days = {
        date(2026, 12, 8): "Immaculate Conception",
        date(2026, 12, 25): "Christmas Day",
        date(2026, 1, 6): "Epiphany",
    }
    return (CalendarView(name="at.bank", revision=4, weekend=("Sat", "Sun"), holidays=days, jobs=("ledger.close",)),)


def audit_view(**values: Any) -> AuditView:
    return AuditView(**({"address": None, "request": None, "before": None, "after": None} | values))


def audit() -> tuple[AuditView, ...]:
    return (
        audit_view(
            at=at("02:58:27"),
            who="worker-b",
            role=None,
            via="node",
            act="takeover",
            subject=INVOICES,
            note="api-2 lost attempt 1: not renewed in time, buried by worker-b",
            result="done",
        ),
        audit_view(
            at=at("02:58:12"),
            who="worker-b",
            role=None,
            via="node",
            act="burial",
            subject="api-2",
            note="not renewed in time, buried by worker-b",
            before={"session": "api-2-7f3a", "last_renewal": at("02:57:57").isoformat()},
            result="done",
        ),
        audit_view(
            at=at("02:10"),
            who="ana",
            role="operate",
            via="dashboard",
            act="pause",
            subject="etl.load",
            note="schema move",
            result="done",
        ),
        audit_view(
            at=at("01:40"),
            who="deploy",
            role="operate",
            via="api",
            act="trigger",
            subject="usage.rollup",
            note="",
            result="outcome unknown",
        ),
        audit_view(
            at=at("23:02", 15),
            who="ben",
            role="operate",
            via="cli",
            act="cancel",
            subject="tax.export",
            note="wrong month",
            result="refused: it had ended",
        ),
    )


def why() -> WhyView:
    facts = (
        FactView(at=at("02:15"), what="the slot came due"),
        FactView(at=at("02:34:31"), what="attempt 1 on worker-c was lost: its lease ran out"),
        FactView(at=None, what="the schedule has this slot"),
    )
    verdict = "usage.rollup ran its slot 02:15, and it succeeded."
    return WhyView(job="usage.rollup", asked=NOW, slot=at("02:15"), status="succeeded", verdict=verdict, facts=facts)


def checks() -> tuple[Check, ...]:
    return (
        Check("store", "OK", "PostgreSQL 16.4 answers in 1.8 ms"),
        Check(
            "clocks",
            "WARN",
            "worker-d is 1.4 s ahead of the store.",
            "Let it follow a time server; above 5 s its log lines mislead.",
        ),
        Check("zone data", "WARN", "worker-c has 2025c, the others 2026b.", "Bring its package tzdata up to date."),
        Check("pools", "FAIL", "No live node serves pool eu: 1 job does not run.", "Start a node with pools=('eu',)."),
        Check("alarms", "OK", "2 told, none undelivered"),
    )
