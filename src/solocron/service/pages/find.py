"""The page of a search: jobs and nodes whose names contain it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from solocron.service.pages.job import state_of
from solocron.service.pages.links import Links
from solocron.service.pages.listing import ListingPage
from solocron.service.pages.nodes import node_badge
from solocron.service.pages.parts import Column, FormField, TableCell, TablePart, TableRow
from solocron.service.pages.words import Reading
from solocron.views import JobView, NodeView

__all__ = ["FindPage", "find_page"]


class FindPage(ListingPage):
    """The jobs and nodes that were found."""

    section: ClassVar[str] = "jobs"


def find_page(
    q: str, *, jobs: Sequence[JobView], nodes: Sequence[NodeView], reading: Reading, links: Links
) -> FindPage:
    """Make the page of what was found; a name that means one thing leads there at once."""
    columns = (Column(title="state"), Column(title="name"), Column(title="next"))
    found = TablePart(
        label="Jobs",
        columns=columns,
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(badge=state_of(job, reading.now)),
                    TableCell(text=job.name, href=links.job(job.name), strong=True),
                    TableCell(text=reading.until(job.next) if job.next else "–"),
                )
            )
            for job in jobs
        ),
        empty=f"No job has “{q}” in its name." if q else "Type a name, or a part of one.",
    )
    hosts = TablePart(
        label="Nodes",
        columns=columns[:2],
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(badge=node_badge(node, reading)),
                    TableCell(text=node.node, href=links.node(node.session), strong=True),
                )
            )
            for node in nodes
        ),
        empty="No node has it in its name.",
    )
    return FindPage(
        title="Find",
        lead="jobs and nodes by a part of their names, runs by their id, slots by job and time: rollup 02:15",
        filters=(FormField(name="q", label="Name", kind="search", value=q),),
        action=links.to("/find"),
        tables=(found, hosts) if nodes else (found,),
    )
