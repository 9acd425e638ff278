"""The list *Needs a look*: alarms, jobs and nodes that are not well, worst first, with their causes and next steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from solocron.clock import from_us
from solocron.model.change import Kind
from solocron.service.pages.alarms import NOT_SUCCEEDED, alarm_entry
from solocron.service.pages.fleet import SKEW
from solocron.service.pages.links import Links
from solocron.service.pages.parts import ActLink, ListEntry
from solocron.service.pages.words import Reading, plural, span
from solocron.stores.contract import Blocked
from solocron.views import AlarmView, JobView, NodeView

__all__ = ["MOST_LOOKS", "aside_entry", "looks_of"]

MOST_LOOKS = 8


def looks_of(
    *,
    jobs: Iterable[JobView],
    nodes: Sequence[NodeView],
    alarms: Sequence[AlarmView],
    unserved: Mapping[str, int],
    reading: Reading,
    links: Links,
    operates: bool,
    aside: Sequence[Blocked] = (),
) -> tuple[ListEntry, ...]:
    """Return at most eight entries; a job that has an entry of its own is not told again by its alarm."""
    found = [(0, _pool(pool, count, links)) for pool, count in sorted(unserved.items())]
    told = set[str]()
    for job in jobs:
        if job.name in told or (job.pool in unserved and job.orphaned and not job.failures):
            continue  # it is told as failing, or by the entry of its pool
        entry = _job(job, reading, links, operates)
        if entry is not None:
            told.add(job.name)
            found.append(entry)
    found += [
        (2, alarm_entry(one, reading, links, operates=operates))
        for one in alarms
        if one.counts and one.subject not in told
    ]
    found += [(3, aside_entry(one, reading, links, operates)) for one in aside]
    found += [entry for node in nodes if (entry := _node(node, reading, links))]
    if len({node.zone_data for node in nodes if node.state == "live"}) > 1:
        words = "nodes with older data may run a slot at another instant after a zone changed its rules"
        doctor = (ActLink(label="Doctor", href=links.to("/doctor")),)
        found.append(
            (
                5,
                ListEntry(
                    title="Zone data",
                    about="differs between nodes",
                    words=words,
                    tone="miss",
                    icon="clock",
                    acts=doctor,
                ),
            )
        )
    return tuple(entry for _, entry in sorted(found, key=lambda one: one[0])[:MOST_LOOKS])


def _pool(pool: str, count: int, links: Links) -> ListEntry:
    return ListEntry(
        title=f"pool {pool}",
        about="has no live node",
        words=f"{plural(count, 'job')} of it {'does' if count == 1 else 'do'} not run until a node of this pool starts",
        tone="fail",
        icon="warn",
        acts=(ActLink(label="Nodes", href=links.nodes()),),
    )


def _job(job: JobView, reading: Reading, links: Links, operates: bool) -> tuple[int, ListEntry] | None:
    href = links.job(job.name)
    stuck = next((run for run in job.running if run.stuck), None)
    if stuck is not None:
        words = f"its body on {stuck.node} still runs although it was asked to stop: {stuck.stopping}"
        step = (ActLink(label="Open the run", href=links.run(stuck.run)),)
        return 0, ListEntry(
            title=job.name, about="is stuck", words=words, tone="fail", icon="warn", href=href, acts=step
        )
    if job.failures:
        pause = ActLink(label="Pause", href=links.job(job.name, "pause"), dialog=True)
        see = ActLink(label="See the error", href=links.runs(job=job.name, status=NOT_SUCCEEDED))
        return 1, ListEntry(
            title=job.name,
            about=f"fails, last at {reading.stamp(job.last_slot)}" if job.last_slot else "fails",
            words=f"{f'{job.failures} slots in a row' if job.failures > 1 else 'its last slot'}, all attempts used:",
            code=(job.last_error or "no error on record").strip().rpartition("\n")[2],
            tone="fail",
            icon="fail",
            href=href,
            acts=(see, pause) if operates and job.paused is None else (see,),
        )
    if job.orphaned and job.enabled:
        words = f"no live node of pool {job.pool} has the handler {job.handler}"
        return 3, ListEntry(title=job.name, about="is orphaned", words=words, tone="miss", icon="warn", href=href)
    late = (reading.now - job.due_at).total_seconds() if job.due_at is not None else 0.0
    if late > 5 and job.paused is None and not job.pauses and job.enabled:
        words = "it is due and not claimed: no place is free, or its limit is used up"
        why = (ActLink(label="Why", href=links.job(job.name, "why")),)
        return 2, ListEntry(
            title=job.name,
            about=f"is late by {span(late)}",
            words=words,
            tone="miss",
            icon="clock",
            href=href,
            acts=why,
        )
    return None


def aside_entry(one: Blocked, reading: Reading, links: Links, operates: bool) -> ListEntry:
    """Return the entry of a document that is set aside, with the act that lets it be tried again."""
    again = ActLink(label="Try again", href=links.set_aside(one.kind, one.name), dialog=True)
    return ListEntry(
        title=one.name,
        about="is set aside",
        words=f"the {one.kind} failed {plural(one.times, 'time')} on its own and is left alone until "
        f"{reading.stamp(from_us(one.until))}:",
        code=one.reason,
        tone="fail",
        icon="warn",
        href=links.job(one.name) if one.kind is Kind.JOB else None,
        acts=(again,) if operates else (),
    )


def _node(node: NodeView, reading: Reading, links: Links) -> tuple[int, ListEntry] | None:
    href, step = links.node(node.session), (ActLink(label="Open", href=links.node(node.session)),)
    if node.state == "silent":
        words = (
            f"its lease ran out {span(reading.now - node.expires_at)} ago; the sweeper buries it and others take over"
        )
        return 2, ListEntry(
            title=node.node, about="is silent", words=words, tone="miss", icon="clock", href=href, acts=step
        )
    if node.state == "dead":
        words = f"{node.reason or 'its lease ran out'}; its runs are still to be taken over"
        return 1, ListEntry(
            title=node.node, about="is dead", words=words, tone="lost", icon="lost", href=href, acts=step
        )
    skew = node.skew_s
    if skew is not None and abs(skew) >= SKEW:
        side = "ahead of" if skew > 0 else "behind"
        about = f"clock is {span(abs(skew))} {side} the store"
        words = "harmless: the store’s clock decides. Above 5 s its log lines mislead"
        doctor = (ActLink(label="Doctor", href=links.to("/doctor")),)
        return 4, ListEntry(
            title=node.node, about=about, words=words, tone="miss", icon="clock", href=href, acts=doctor
        )
    return None
