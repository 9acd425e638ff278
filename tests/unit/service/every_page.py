"""Every page of the dashboard, made from the fixed fleet: by name, the page, its reading and the role of the reader."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from solocron.schedules import Cron
from solocron.service.pages import listing, shared
from solocron.service.pages.alarms import alarms_page
from solocron.service.pages.audit import audit_page
from solocron.service.pages.details import job_page, node_page, run_page
from solocron.service.pages.explain import ExplainRules, days_of_a_year, explain_page
from solocron.service.pages.find import find_page
from solocron.service.pages.fleet import FleetPart
from solocron.service.pages.forms import ActPage, LoginPage, ProblemPage
from solocron.service.pages.frame import Frame
from solocron.service.pages.job import JobDetailPage
from solocron.service.pages.jobs import JobsPage
from solocron.service.pages.lists import JobsAsked, RunsAsked, jobs_page, nodes_page, runs_page
from solocron.service.pages.looks import looks_of
from solocron.service.pages.nodes import NodePage, NodesPage
from solocron.service.pages.overview import CountingPage, EmptyPage, OverviewPage, overview_page
from solocron.service.pages.parts import (
    Choice,
    Choices,
    Column,
    FormField,
    ListEntry,
    TableCell,
    TablePart,
    TableRow,
)
from solocron.service.pages.render import DashboardPage
from solocron.service.pages.run import RunDetailPage
from solocron.service.pages.runs import RunsPage
from solocron.service.pages.spans import SlotsSpan
from solocron.service.pages.why import unaccounted_page, why_page
from solocron.service.pages.words import Reading
from solocron.views import JobView, RunView
from tests.unit.service import world
from tests.unit.service.world import LINKS, NOW, UTC_READING, VIENNA


def frame(reading: Reading = UTC_READING, *, links=LINKS, role: str = "operate") -> Frame:
    return Frame(
        links=links,
        reading=reading,
        namespace="billing",
        store="PostgreSQL",
        tier="A",
        place="solocron@db/app",
        round_trip_ms=1.8,
        release="0.2.0",
        who="ana",
        role=role,
        csrf="c5f1",
        counts={"jobs": 52, "nodes": 5, "alarms": 2, "limits": 2, "locks": 3, "calendars": 1},
        live="live",
        topics="runs,nodes,alarms",
    )


def _choices(label: str, *words: str) -> Choices:
    return Choices(
        label=label,
        choices=tuple(
            Choice(label=word, href=LINKS.overview(view=word), chosen=not place) for place, word in enumerate(words)
        ),
    )


def fleet() -> FleetPart:
    return overview().fleet


def overview(**changes) -> OverviewPage:
    values = {
        "sums": world.sums(),
        "nodes": world.nodes(),
        "runs": world.runs(),
        "running": [run for run in world.runs() if run.status == "running"],
        "running_now": sum(run.status == "running" for run in world.runs()),
        "to_come": world.to_come(),
        "looks": looks(),
        "reading": UTC_READING,
        "links": LINKS,
        "cleared_at": NOW - timedelta(hours=4),
    }
    return overview_page(**(values | changes))


def looks() -> tuple[ListEntry, ...]:
    return looks_of(
        jobs=world.jobs(),
        nodes=world.nodes(),
        alarms=world.alarms().alarms,
        unserved={"eu": 1},
        reading=UTC_READING,
        links=LINKS,
        operates=True,
    )


def job(job: JobView, runs: tuple[RunView, ...]) -> JobDetailPage:
    slot = world.at("02:15")
    return job_page(
        job,
        fates=world.fates() if runs else (),
        runs=runs[:20],
        history=runs,
        reading=VIENNA,
        links=LINKS,
        operates=True,
        span=SlotsSpan.chosen("24d", timedelta(hours=1)),
        here=partial(LINKS.job, job.name),
        chosen=slot if runs else None,
        attempts=(world.LOST, world.SECOND),
        refused=(world.REFUSED,),
        older=LINKS.job(job.name, cursor="abc"),
        upcoming=[(world.at("03:15") + timedelta(hours=n), "") for n in range(5)],
        days_off={date(2026, 11, 1): "All Saints"},
        notes=("On Sun 28 Mar 2027 the hour from 02:00 does not exist: 02:15 is run at 03:00.",),
        skipped=4,
        lease_s=15.0,
    )


def run() -> RunDetailPage:
    step = TableRow(cells=(TableCell(text="load", strong=True), TableCell(text="03:36:02")))
    columns = (Column(title="step"), Column(title="finished"))
    return run_page(
        (replace(world.LOST, error=world.TRACE), world.SECOND),
        nodes=[node for node in world.nodes() if node.node in ("worker-a", "worker-c")],
        reading=VIENNA,
        links=LINKS,
        operates=True,
        steps=TablePart(label="Steps", columns=columns, rows=(step,), empty="None."),
        values=(("result", '{\n  "rows": 18211\n}'),),
        output="loading 18211 rows\ndone",
    )


def node(place: int = 5) -> NodePage:
    one = world.nodes()[place]
    mine = [run for run in world.runs()[::-1] if run.node == one.node]
    return node_page(
        one,
        holds=[world.hold_view(run) for run in mine if run.status == "running"],
        runs=mine[:20],
        earlier=world.earlier(one),
        reading=UTC_READING,
        links=LINKS,
    )


def runs() -> RunsPage:
    listed = (*world.runs()[::-1][:30], *world.usage_runs()[15:18])
    older = LINKS.runs(cursor="abc")
    return runs_page(
        listed, asked=RunsAsked(), reading=UTC_READING, links=LINKS, older=older, looked="looked back to 02:10"
    )


def jobs(asked: JobsAsked = JobsAsked(), *, not_well: int = 2) -> JobsPage:  # noqa: B008 -- frozen
    strip = world.fates()[-50:-20]
    listed = () if asked.q else world.jobs()
    strips = {job.name: strip for job in listed if job.last_status}
    common = {"reading": UTC_READING, "links": LINKS, "counted_to": 1_000}
    return jobs_page(listed, strips=strips, asked=asked, total=52, not_well=not_well, operates=True, **common)


def nodes() -> NodesPage:
    common = {"reading": UTC_READING, "links": LINKS}
    return nodes_page(world.nodes(), unserved={"eu": 1}, ended=True, **common)


def act_page() -> ActPage:
    return ActPage(
        title="Pause usage.rollup",
        sentences=(
            "Nothing more of it starts by schedule.",
            "worker-b goes on with 02:30.",
            "Slots until then are on record as skipped, with your note.",
        ),
        fields=(
            FormField(name="note", label="Why", hint="everyone who looks sees it"),
            FormField(name="until", label="Until", kind="datetime"),
            FormField(name="key", label="", kind="hidden", value="k1"),
        ),
        action=LINKS.job("usage.rollup", "pause"),
        back=LINKS.job("usage.rollup"),
    )


def every_page() -> dict[str, tuple[DashboardPage, Reading]]:
    named = {job.name: job for job in world.jobs()}
    vienna = ZoneInfo("Europe/Vienna")
    slots = [datetime(2026, 11, 17 + n, 2, 15, tzinfo=vienna) for n in range(5)]
    common = {"reading": UTC_READING, "links": LINKS}
    return {
        "overview": (overview(), UTC_READING),
        "overview-by-job": (overview(lanes="job"), UTC_READING),
        "overview-queues": (overview(runs=world.queued_runs(), looks=()), UTC_READING),
        "overview-red": (
            overview(sums=world.sums(unaccounted=(("usage.rollup", world.at("01:15")),) * 2, missing=2), looks=()),
            UTC_READING,
        ),
        "overview-empty": (EmptyPage(why="there is no such file", store='"sqlite:///jobs.db"'), UTC_READING),
        "overview-counting": (CountingPage(hours=7, of=24), UTC_READING),
        "wall": (overview(wall=True), UTC_READING),
        "jobs": (jobs(), UTC_READING),
        "jobs-none": (jobs(JobsAsked(q="nothing")), UTC_READING),
        "job": (job(named["usage.rollup"], world.usage_runs()), VIENNA),
        "job-paused": (job(named["etl.load"], world.usage_runs()), VIENNA),
        "job-new": (job(named["reports.monthly"], ()), VIENNA),
        "runs": (runs(), UTC_READING),
        "run": (run(), VIENNA),
        "nodes": (nodes(), UTC_READING),
        "node": (node(), UTC_READING),
        "node-live": (node(1), UTC_READING),
        "alarms": (alarms_page(world.alarms(), operates=True, **common), UTC_READING),
        "limits": (shared.limits_page(world.limits(), **common), UTC_READING),
        "locks": (shared.locks_page(world.locks(), operates=True, **common), UTC_READING),
        "calendars": (shared.calendars_page(world.calendars(), **common), UTC_READING),
        "why": (why_page(world.why(), at="2026-11-16T03:15", reading=VIENNA, links=LINKS), VIENNA),
        "accounting": (unaccounted_page(world.sums(left_out={"beat": "too many slots"}), **common), UTC_READING),
        "find": (find_page("usage", jobs=world.jobs()[:2], nodes=world.nodes()[:1], **common), UTC_READING),
        "calendar": (shared.calendar_page(world.calendars()[0], **common), UTC_READING),
        "audit": (audit_page(world.audit(), **common), UTC_READING),
        "doctor": (listing.doctor_page(world.checks(), links=LINKS, operates=True), UTC_READING),
        "explain": (
            explain_page(
                rules=ExplainRules(expression="15 2 * * MON-FRI", zone="Europe/Vienna", gap="skip"),
                words="At 02:15 on Monday to Friday, Europe/Vienna",
                slots=slots,
                days=days_of_a_year(Cron("15 2 * * MON-FRI", tz="Europe/Vienna"), NOW),
                notes=("On Sun 28 Mar 2027 02:15 does not exist.",),
                problem="",
                **common,
            ),
            UTC_READING,
        ),
        "explain-wrong": (
            explain_page(
                rules=ExplainRules(expression="61 * * * *"),
                words="",
                slots=(),
                notes=(),
                problem="61 is not a minute; minutes are 0 to 59.",
                **common,
            ),
            UTC_READING,
        ),
        "act": (act_page(), UTC_READING),
        "login": (LoginPage(action=LINKS.to("/login"), wanted="/", failed=True), UTC_READING),
        "problem": (
            ProblemPage(
                status=404,
                title="Not found",
                detail="There is no job usage.rolup; did you mean usage.rollup?",
                request="req-7Q2M9ZC4",
            ),
            UTC_READING,
        ),
    }
