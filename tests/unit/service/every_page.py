"""Every page of the dashboard, made from the fixed fleet: by name, the page, its reading and the role of the reader."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from solocron.service.pages import listing, shared
from solocron.service.pages.fleet import FleetPart, by_node, window_of
from solocron.service.pages.forms import ActPage, LoginPage, ProblemPage, explain_page
from solocron.service.pages.frame import Frame
from solocron.service.pages.job import JobDetailPage, band_of, durations_of, facts_of, job_acts, policies_of, state_of
from solocron.service.pages.jobs import JobsPage, by_attention, jobs_table
from solocron.service.pages.looks import looks_of
from solocron.service.pages.nodes import NodePage, NodesPage, node_badge, node_facts, nodes_table, unserved_words
from solocron.service.pages.overview import OverviewPage, overview_page
from solocron.service.pages.parts import (
    Choice,
    Choices,
    Column,
    Entry,
    FormField,
    TableCell,
    TablePart,
    TableRow,
    badge_of,
)
from solocron.service.pages.render import DashboardPage
from solocron.service.pages.run import RunDetailPage, errors_of, run_acts, run_facts, run_window
from solocron.service.pages.runs import RunsPage, runs_table
from solocron.service.pages.slots import slots_part
from solocron.service.pages.story import story_of
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
        "refused": (world.REFUSED,),
        "to_come": world.to_come(),
        "looks": looks(),
        "reading": UTC_READING,
        "links": LINKS,
        "skews_ms": world.SKEWS,
        "leases": world.LEASES,
        "cleared_at": NOW - timedelta(hours=4),
    }
    return overview_page(**(values | changes))


def looks() -> tuple[Entry, ...]:
    return looks_of(
        jobs=world.jobs(),
        nodes=world.nodes(),
        alarms=world.alarms().alarms,
        unserved={"eu": 1},
        skews_ms=world.SKEWS,
        reading=UTC_READING,
        links=LINKS,
        operates=True,
    )


def job_page(job: JobView, runs: tuple[RunView, ...], **changes) -> JobDetailPage:
    fates, slot = world.fates(), world.at("02:15")
    ended = [run for run in runs if run.finished_at]
    made = JobDetailPage(
        name=job.name,
        state=state_of(job, NOW),
        schedule=job.schedule,
        zone=job.zone,
        expression=job.expression,
        about=f"pool {job.pool} · revision {job.revision}",
        place=job.place,
        band=band_of(job, VIENNA, 4),
        acts=job_acts(job, LINKS),
        facts=facts_of(
            job,
            reading=VIENNA,
            links=LINKS,
            took=(366.0, 462.0) if ended else None,
            late=(0.21, 0.4) if ended else None,
            accounted=(720, 720, "3 missed, 5 skipped") if ended else None,
        ),
        slots=slots_part(
            fates,
            job=job.name,
            chosen=slot,
            reading=VIENNA,
            links=LINKS,
            days_off={date(2026, 11, 1): "All Saints"},
            choices=(_choices("Zone", "Vienna", "UTC", "mine"), _choices("Span", "24 d", "3 d", "90 d")),
        )
        if ended
        else None,
        story=story_of(
            slot,
            (world.LOST, world.SECOND),
            refused=(world.REFUSED,),
            reading=VIENNA,
            links=LINKS,
            before=slot - timedelta(hours=1),
            after=slot + timedelta(hours=1),
            operates=True,
        )
        if ended
        else None,
        runs=runs_table(
            runs[:20],
            reading=VIENNA,
            links=LINKS,
            with_job=False,
            chosen=slot,
            empty="It never ran; declared 2 h ago, the first slot is in 3 h.",
        ),
        filters=_choices("Filter", "all", "not well", "running"),
        older=LINKS.job(job.name, cursor="abc") if ended else None,
        durations=durations_of(runs, job=job, reading=VIENNA, links=LINKS),
        next=tuple(
            (
                VIENNA.stamp(world.at("03:15") + timedelta(hours=n)),
                VIENNA.until(world.at("03:15") + timedelta(hours=n)),
                "",
            )
            for n in range(5)
        ),
        policies=policies_of(job, 15.0),
        notes=("On Sun 28 Mar 2027 the hour from 02:00 does not exist: 02:15 is run at 03:00.",),
    )
    return replace(made, **changes)


def run_page() -> RunDetailPage:
    attempts = (world.LOST, world.SECOND)
    lanes = by_node(
        nodes=[node for node in world.nodes() if node.node in ("worker-a", "worker-c")],
        runs=attempts,
        refused=(world.REFUSED,),
        to_come=(),
        window=run_window(attempts, VIENNA),
        reading=VIENNA,
        links=LINKS,
    )
    failed = replace(world.LOST, error=world.TRACE)
    return RunDetailPage(
        run=world.TAKEN,
        job="usage.rollup",
        job_href=LINKS.job("usage.rollup"),
        head="slot Mon 16 Nov, 03:15 in Vienna",
        state=badge_of("succeeded", "succeeded on attempt 2"),
        acts=run_acts(world.SECOND, LINKS),
        facts=run_facts(attempts, VIENNA),
        lanes=lanes,
        story=story_of(world.at("02:15"), attempts, refused=(world.REFUSED,), reading=VIENNA, links=LINKS),
        attempts=runs_table(attempts[::-1], reading=VIENNA, links=LINKS, with_job=False, empty=""),
        errors=errors_of((failed, world.SECOND)),
        steps=TablePart(
            label="Steps",
            columns=(Column(title="step"), Column(title="finished")),
            rows=(TableRow(cells=(TableCell(text="load", strong=True), TableCell(text="03:36:02"))),),
            empty="None.",
        ),
        values=(("result", '{\n  "rows": 18211\n}'),),
        values_href=None,
        output="loading 18211 rows\ndone",
        fence=world.SECOND.fence,
        key=world.SECOND.key,
    )


def node_page() -> NodePage:
    node = world.nodes()[5]
    mine = [run for run in world.runs() if run.node == node.node]
    return NodePage(
        name=node.node,
        state=node_badge(node, UTC_READING),
        head="host api-2, pools default",
        band="Dead since 02:58:12: its lease ran out, worker-b buried it. 1 run was taken over.",
        facts=node_facts(node, UTC_READING, None),
        lanes=by_node(
            nodes=[node],
            runs=mine,
            refused=(),
            to_come=(),
            window=window_of(NOW, 3_600),
            reading=UTC_READING,
            links=LINKS,
        ),
        runs=runs_table(mine, reading=UTC_READING, links=LINKS, with_job=True, empty="It ran nothing."),
    )


def runs_page() -> RunsPage:
    statuses = (("", "any"), ("failed", "failed"), ("lost", "lost"), ("missed", "missed"))
    filters = (
        FormField(name="job", label="Job", kind="search"),
        FormField(name="status", label="Status", kind="select", choices=statuses),
        FormField(name="node", label="Node"),
        FormField(name="since", label="Since", kind="datetime"),
    )
    listed = (*world.runs()[::-1][:30], *world.usage_runs()[15:18])
    return RunsPage(
        filters=filters,
        presets=_choices("Presets", "all", "not well", "taken over", "did not run", "by people"),
        table=runs_table(listed, reading=UTC_READING, links=LINKS, with_job=True, empty="No run fits these filters."),
        older=LINKS.runs(cursor="abc"),
        newer=None,
        looked="looked back to 02:10",
    )


def jobs_page(found: bool = True) -> JobsPage:
    strip = world.fates()[-50:-20]
    states = (("", "any"), ("failing", "failing"), ("paused", "paused"))
    filters = (
        FormField(name="q", label="Name", kind="search", value="" if found else "nothing"),
        FormField(name="state", label="State", kind="select", choices=states),
        FormField(name="sort", label="Sort", kind="select", choices=(("attention", "attention"), ("name", "name"))),
    )
    listed = by_attention(world.jobs(), UTC_READING) if found else []
    return JobsPage(
        lead="52 jobs, 2 not well",
        filters=filters,
        filtered=not found,
        table=jobs_table(
            listed,
            {job.name: strip for job in listed if job.last_status},
            reading=UTC_READING,
            links=LINKS,
            empty="No job has “nothing” in its name.",
        ),
        older=None,
        newer=None,
    )


def nodes_page() -> NodesPage:
    table = nodes_table(
        world.nodes(),
        reading=UTC_READING,
        links=LINKS,
        leases=world.LEASES,
        skews_ms=world.SKEWS,
        empty="No node was ever here.",
    )
    return NodesPage(
        lead="5 live, 1 ended",
        missing=unserved_words({"eu": 1}),
        states=_choices("State", "live and dead", "ended"),
        table=table,
    )


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
    jobs = {job.name: job for job in world.jobs()}
    vienna = ZoneInfo("Europe/Vienna")
    slots = [datetime(2026, 11, 16 + n, 2, 15, tzinfo=vienna) for n in range(5)]
    common = {"reading": UTC_READING, "links": LINKS}
    return {
        "overview": (overview(), UTC_READING),
        "overview-by-job": (overview(lanes="job"), UTC_READING),
        "overview-red": (
            overview(sums=world.sums(unaccounted=2), looks=()),
            UTC_READING,
        ),
        "overview-empty": (overview(empty=True), UTC_READING),
        "wall": (overview(wall=True), UTC_READING),
        "jobs": (jobs_page(), UTC_READING),
        "jobs-none": (jobs_page(found=False), UTC_READING),
        "job": (job_page(jobs["usage.rollup"], world.usage_runs()), VIENNA),
        "job-paused": (job_page(jobs["etl.load"], world.usage_runs()), VIENNA),
        "job-new": (job_page(jobs["reports.monthly"], ()), VIENNA),
        "runs": (runs_page(), UTC_READING),
        "run": (run_page(), VIENNA),
        "nodes": (nodes_page(), UTC_READING),
        "node": (node_page(), UTC_READING),
        "alarms": (listing.alarms_page(world.alarms(), closed=False, **common), UTC_READING),
        "limits": (shared.limits_page(world.limits(), **common), UTC_READING),
        "locks": (shared.locks_page(world.locks(), operates=True, **common), UTC_READING),
        "calendars": (shared.calendars_page(world.calendars(), **common), UTC_READING),
        "audit": (listing.audit_page(world.audit(), **common), UTC_READING),
        "doctor": (listing.doctor_page(world.checks(), links=LINKS, operates=True, repairs=1), UTC_READING),
        "explain": (
            explain_page(
                expression="15 2 * * *",
                zone="Europe/Vienna",
                words="At 02:15 every day",
                slots=slots,
                notes=("On Sun 28 Mar 2027 02:15 does not exist.",),
                problem="",
                **common,
            ),
            UTC_READING,
        ),
        "explain-wrong": (
            explain_page(
                expression="61 * * * *",
                zone="UTC",
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
