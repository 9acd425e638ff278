"""`Client`: every operation on one namespace, each from the class that owns it."""

from __future__ import annotations

from solocron.client.alarms import AlarmDesk
from solocron.client.audit import Audit
from solocron.client.backfill import Backfills
from solocron.client.bulk import BulkDefinitions
from solocron.client.census import Census
from solocron.client.commands import Commands
from solocron.client.definitions import Definitions
from solocron.client.hour_counts import HourCounts
from solocron.client.job_documents import JobDocuments
from solocron.client.job_listing import JobListing
from solocron.client.queries import Queries
from solocron.client.restore import Restore
from solocron.client.run_listing import RunListing
from solocron.client.run_lookup import RunLookup
from solocron.client.scoped_pauses import ScopedPauses
from solocron.client.slots import Slots
from solocron.client.status import StatusReader
from solocron.client.timeline import Timeline
from solocron.client.why import Why
from solocron.clock import SECOND
from solocron.jobs.registry import Registry
from solocron.runtime import Runtime, Threads
from solocron.stores.contract import Store

__all__ = ["Client"]


class Client:
    """The operations on one namespace of a store.

    The methods are those of its parts, bound here: a wrapper for each of them would repeat every signature a second
    time, and `Scheduler` has them with signatures and docstrings already.
    """

    def __init__(
        self,
        store: Store,
        *,
        registry: Registry | None = None,
        runtime: Runtime | None = None,
        late_for: int = 25 * SECOND,
    ) -> None:
        documents = JobDocuments(store, registry or Registry(), runtime or Threads(), late_for)
        lookup = RunLookup(documents)
        census = Census(documents)
        jobs, runs = JobListing(documents, census), RunListing(documents, lookup)
        backfills, definitions, bulk = Backfills(documents, census), Definitions(documents), BulkDefinitions(documents)
        alarms, audit = AlarmDesk(documents), Audit(documents)
        queries, commands = Queries(documents, lookup, jobs, runs, census), Commands(documents, lookup)
        self.hour_counts = HourCounts(store)
        scoped_pauses, slots, timeline = ScopedPauses(documents), Slots(documents), Timeline(documents)

        self.store = store
        self.documents = documents
        """What its parts stand on, for telemetry, which reads every job at once."""
        self.changed = documents.changed
        """Called after each change, so that a node in the same process looks at once."""

        self.job_page = jobs.page
        self.count_not_well = jobs.count_not_well
        self.first_created = census.first_created
        self.read_ahead = census.read_ahead
        self.run_page = runs.page
        self.newest_runs = runs.newest
        self.run_payload = lookup.payload
        self.every_run = runs.every

        self.jobs = queries.jobs
        self.get_job = queries.get_job
        self.read_job = queries.read_job
        self.runs = queries.runs
        self.get_run = queries.get_run
        self.whole_run = queries.whole_run
        self.attempts = queries.attempts
        self.nodes = queries.nodes
        self.limits = queries.limits
        self.status = StatusReader(documents, alarms, census, self.hour_counts).status
        self.upcoming = queries.upcoming
        self.upcoming_changes = queries.upcoming_changes
        self.schedule = queries.schedule
        self.calendars = queries.calendars

        self.slots = slots.slots
        self.accounting = slots.accounting
        self.accounts = slots.accounts
        self.why = Why(documents, slots).why
        self.timeline = timeline.timeline
        self.to_come = timeline.to_come
        self.dense = timeline.dense

        self.open_alarms = alarms.open_alarms
        self.closed_alarms = alarms.closed_alarms
        self.silence = alarms.silence
        self.lift_silence = alarms.lift_silence

        self.audited = audit.audited
        self.audit = audit.entries

        self.trigger = commands.trigger
        self.request = commands.request
        self.wait = commands.wait
        self.waiting = commands.waiting
        self.cancel = commands.cancel
        self.pause = commands.pause
        self.resume = commands.resume
        self.resume_preview = commands.resume_preview
        self.pauses = scoped_pauses.pauses
        self.pause_all = scoped_pauses.pause_all
        self.resume_all = scoped_pauses.resume_all

        self.rerun = backfills.rerun
        self.backfill = backfills.backfill
        self.backfills = backfills.backfills
        self.forget_jobs = census.forget
        """Let the next list of limits, calendars or backfills read every job, where another client has changed some."""
        self.backfill_running = backfills.backfill_running

        self.add = definitions.add
        self.remove = definitions.remove
        self.add_all = bulk.add_all
        self.remove_all = bulk.remove_all
        self.sync = bulk.sync
        self.adopt = definitions.adopt
        self.adopt_all = definitions.adopt_all
        self.calendar = definitions.calendar
        self.restored = Restore(documents).restored
