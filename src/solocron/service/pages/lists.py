"""Whole pages of many things, from their views: jobs, runs, nodes; their filters stay in the address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from solocron.model.documents.run import Origin, Status
from solocron.service.pages.fleet import RefusedResult
from solocron.service.pages.jobs import JobsPage, jobs_table
from solocron.service.pages.links import Links
from solocron.service.pages.nodes import NodesPage, nodes_table, unserved_words
from solocron.service.pages.parts import FormField, choose
from solocron.service.pages.runs import RunsPage, runs_table
from solocron.service.pages.slots import SlotFate
from solocron.service.pages.words import Reading, number, plural
from solocron.views import JobView, NodeView, RunView

__all__ = ["JOB_STATES", "JobsAsked", "RunsAsked", "jobs_page", "nodes_page", "runs_page"]

JOB_STATES = (
    "not_well",
    "running",
    "failing",
    "late",
    "paused",
    "orphaned",
    "disabled",
    "set_aside",
    "waiting",
    "never_ran",
)
_PRESETS = (
    ("", "all"),
    ("failed,timed_out,lost,missed,dropped", "not well"),
    ("lost", "taken over"),
    ("skipped,missed,dropped", "did not run"),
)
"""Statuses that are often looked for together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsAsked:
    """The filters of the jobs page, as its address has them."""

    q: str = ""
    state: str = ""
    pool: str = ""
    tag: str = ""
    sort: str = "attention"

    @property
    def filters(self) -> bool:
        """True if a filter leaves jobs out."""
        return bool(self.q or self.state or self.pool or self.tag)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsAsked:
    """The filters of the runs page, as its address has them."""

    job: str = ""
    status: tuple[str, ...] = ()
    origin: str = ""
    node: str = ""
    since: str = ""
    until: str = ""


def jobs_page(
    jobs: Sequence[JobView],
    *,
    strips: Mapping[str, Sequence[SlotFate]],
    asked: JobsAsked,
    total: int | None,
    not_well: int | None,
    counted_to: int,
    reading: Reading,
    links: Links,
    operates: bool = False,
    older: str | None = None,
    newer: str | None = None,
) -> JobsPage:
    """Make a page of jobs; `total` and `not_well` are of the namespace, not of the page; None while it is counted.

    Jobs that are not well are counted to `counted_to`; a higher number means that there are more.
    """
    ill = "all well"
    if not_well:
        ill = f"{number(not_well)} not well" if not_well <= counted_to else f"more than {number(counted_to)} not well"
    fields = (
        FormField(name="q", label="Name", kind="search", value=asked.q),
        FormField(name="state", label="State", kind="select", value=asked.state, choices=_any(JOB_STATES)),
        FormField(name="pool", label="Pool", value=asked.pool),
        FormField(name="tag", label="Tag", value=asked.tag),
        FormField(
            name="sort", label="Sort", kind="select", value=asked.sort, choices=_words(("attention", "name", "next"))
        ),
    )
    return JobsPage(
        lead="how many are well is being counted" if total is None else f"{plural(total, 'job')}, {ill}",
        filters=fields,
        filtered=asked.filters,
        table=jobs_table(jobs, strips, reading=reading, links=links, empty=_nothing(asked), picks=operates),
        older=older,
        newer=newer,
        bulk=links.to("/bulk") if operates else None,
    )


def runs_page(
    runs: Sequence[RunView],
    *,
    asked: RunsAsked,
    reading: Reading,
    links: Links,
    older: str | None = None,
    newer: str | None = None,
    looked: str = "",
    refused: Sequence[RefusedResult] = (),
) -> RunsPage:
    """Make a page of runs, newest first; `looked` says how far back was looked if the page is short."""
    statuses = tuple(str(one) for one in Status)
    only = asked.status[0] if len(asked.status) == 1 else ""
    fields = (
        FormField(name="job", label="Job", kind="search", value=asked.job),
        FormField(name="status", label="Status", kind="select", value=only, choices=_any(statuses)),
        FormField(name="origin", label="Origin", kind="select", value=asked.origin, choices=_any(map(str, Origin))),
        FormField(name="node", label="Node", value=asked.node),
        FormField(name="since", label="Since", kind="datetime", value=asked.since),
        FormField(name="until", label="Until", kind="datetime", value=asked.until),
    )
    presets = [(status, words, links.runs(status=tuple(filter(None, status.split(","))))) for status, words in _PRESETS]
    presets.append(("people", "by people", links.runs(origin="trigger")))
    chosen = "people" if asked.origin == "trigger" and not asked.status else ",".join(asked.status)
    return RunsPage(
        filters=fields,
        presets=choose("Presets", chosen, presets),
        table=runs_table(
            runs, reading=reading, links=links, with_job=True, refused=refused, empty="No run fits these filters."
        ),
        older=older,
        newer=newer,
        looked=looked,
    )


def nodes_page(
    nodes: Sequence[NodeView],
    *,
    unserved: Mapping[str, int],
    ended: bool,
    left_out: int = 0,
    reading: Reading,
    links: Links,
) -> NodesPage:
    """Make the page of nodes; `ended` shows those that are over too, and `left_out` is how many more there are."""
    states = Counter(node.state for node in nodes)
    told = ", ".join(f"{states[one]} {one}" for one in ("live", "silent", "dead", "ended") if states[one])
    ways = [("", "live and dead", links.nodes()), ("ended", "with ended", links.nodes(state="ended"))]
    empty = "No node is here: start one with `solocron run`."
    return NodesPage(
        lead=(told or "no node") + (f"; {left_out:,} more are not shown" if left_out > 0 else ""),
        missing=unserved_words(unserved),
        states=choose("State", "ended" if ended else "", ways),
        table=nodes_table(nodes, reading=reading, links=links, empty=empty),
    )


def _words(values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((value, value.replace("_", " ")) for value in values)


def _any(values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return (("", "any"), *_words(tuple(values)))


def _nothing(asked: JobsAsked) -> str:
    if not asked.filters:
        return "No job is declared here yet."
    parts = [
        f"with “{asked.q}” in its name" if asked.q else "",
        f"that is {asked.state.replace('_', ' ')}" if asked.state else "",
        f"of pool {asked.pool}" if asked.pool else "",
        f"with tag {asked.tag}" if asked.tag else "",
    ]
    return f"There is no job {', '.join(part for part in parts if part)}."
