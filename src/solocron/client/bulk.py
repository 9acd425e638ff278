"""Many jobs as data in few statements: add and remove them, or make those below a prefix equal to a list.

Each job is changed by itself, atomically; a batch of them is one transaction of the store, or one script. Every check
comes before the first write. A call that was interrupted is repeated without harm: what is there already is left as it
is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from solocron.author import check_author
from solocron.client.job_documents import JobDocuments, is_orphaned
from solocron.client.proposals import Proposals
from solocron.errors import ConflictError, InvalidError, NotFoundError, StoreError
from solocron.jobs.checks import check_name, check_names
from solocron.jobs.job_spec import JobSpec
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.calendar import calendar_of
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job
from solocron.model.documents.run import plain
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.refusals import Refusal, Refused
from solocron.model.timetable import Resolve
from solocron.model.transitions import registration
from solocron.model.transitions.commands import reason_of
from solocron.stores.contract import Named, Result, Verdict
from solocron.stores.paging import iter_jobs_below, read_jobs, sessions_since
from solocron.stores.until_known import update_until_known
from solocron.views import SyncView

__all__ = ["BulkDefinitions"]

BATCH = 500
"""Jobs in one write."""
_SAME, _LEFT = "same", "left"
"""Answers of changes that write nothing: the job is so already; another process has changed it meanwhile."""
_SHOWN = 5


class BulkDefinitions:
    """Adds, removes and synchronises many jobs."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store

    def add_all(self, jobs: Iterable[JobSpec], *, by: str | None = None, note: str | None = None) -> list[str]:
        """Add or change jobs as data; return the names of those that were not so already, which get this author."""
        check_author(by, note, undone="nothing was changed")
        specs = _by_name(jobs)
        known = self._read(list(specs))
        wanted = self._definitions(specs, known)
        answers = self._write(wanted, {}, by, note)
        return [name for name, answer in answers.items() if answer != _SAME]

    def remove_all(self, names: Iterable[str], *, by: str | None = None, note: str | None = None) -> list[str]:
        """Remove jobs that no live code declares; return the names of those that were there."""
        check_author(by, note, undone="nothing was removed")
        given = [check_name(name) for name in check_names(names, "names", untouched="Nothing was removed.")]
        found = self._read(given)
        sessions, now = sessions_since(self._store), self._store.clock()
        declared = [
            job.name for job in found.values() if job.source is not None and not is_orphaned(job, sessions, now)
        ]
        if declared:
            raise ConflictError(
                f"{_listed(declared)} declared in code that runs now, so nothing was removed; take it out of the code."
            )
        answers = self._write({}, dict.fromkeys(found), by, note)
        return [name for name, answer in answers.items() if answer is not None]

    def sync(
        self,
        jobs: Iterable[JobSpec],
        *,
        within: str,
        dry_run: bool = False,
        by: str | None = None,
        note: str | None = None,
    ) -> SyncView:
        """Make the jobs that were added below a prefix equal to a list; `dry_run` only compares.

        Jobs that code declares are not touched. A job that another process has changed since it was compared is not
        removed: it is in `left`, and the next sync decides.
        """
        check_author(by, note, undone="nothing was changed")
        if not isinstance(within, str) or not within:
            raise InvalidError(
                f'within={within!r:.40}: give the beginning of the names that the list is about, such as "invoice:". '
                "Nothing was changed."
            )
        specs = _by_name(jobs)
        outside = [name for name in specs if not name.startswith(within)]
        if outside:
            raise InvalidError(
                f"{_listed(outside)} not below {within!r}, so the next sync would not find it; nothing was changed."
            )
        stored = self._below(within)
        wanted = self._definitions(specs, stored)
        gone = {name: job for name, job in stored.items() if name not in wanted and job.source is None}
        changed = {
            name: _differences(stored[name].definition, one)
            for name, one in wanted.items()
            if name in stored and not _is(stored[name], one)
        }
        added = [name for name in wanted if name not in stored]
        view = partial(SyncView, within=within, same=len(wanted) - len(added) - len(changed))
        if dry_run:
            return view(added=tuple(added), changed=changed, removed=tuple(gone), left=(), applied=False)
        answers = self._write({name: wanted[name] for name in (*added, *changed)}, gone, by, note)
        left = tuple(name for name in gone if answers[name] == _LEFT)
        removed = tuple(name for name in gone if name not in left)
        return view(added=tuple(added), changed=changed, removed=removed, left=left, applied=True)

    # --- reading -------------------------------------------------------------------------------------------------

    def _read(self, names: list[str]) -> dict[str, Job]:
        found: list[Job] = []
        for start in range(0, len(names), BATCH):
            found += read_jobs(self._store, names[start : start + BATCH])
        self._documents.calendars.learn(found)
        return {job.name: job for job in found if not job.removed}

    def _below(self, prefix: str) -> dict[str, Job]:
        """Read the jobs whose names begin with a prefix, by name."""
        found = list(iter_jobs_below(self._store, prefix))
        self._documents.calendars.learn(found)
        return {job.name: job for job in found if not job.removed}

    def _definitions(self, specs: Mapping[str, JobSpec], stored: Mapping[str, Job]) -> dict[str, Definition]:
        """Check every job; nothing is written if one of them is wrong."""
        declared = [name for name in specs if name in stored and stored[name].source is not None]
        if declared:
            raise ConflictError(
                f"{_listed(declared)} declared in code, so nothing was changed; change it there, or choose other names."
            )
        data = {name for name, job in stored.items() if job.source is None}
        proposals = Proposals(self._documents, replaced={*specs, *data})
        return {name: _defined(proposals, spec) for name, spec in specs.items()}

    # --- writing -------------------------------------------------------------------------------------------------

    def _write(
        self, wanted: Mapping[str, Definition], gone: Mapping[str, Job | None], by: str | None, note: str | None
    ) -> dict[str, object]:
        """Write the definitions, and remove the rest; return the answer for each, None for a job that was not there.

        A job that is to be removed is removed only as it was seen; None: however it is.
        """
        documents = self._documents
        decide = _Rules(
            late_for=documents.late_for,
            resolve=documents.resolve,
            pauses=documents.pauses(),
            by=plain(by),
            note=plain(note),
        )
        names, results = [*wanted, *gone], dict[str, Result]()

        def change(doc: Job | Absent, now: int) -> Change | None:
            if doc.name in wanted:
                return decide.define(doc, wanted[doc.name], now)
            return decide.remove(doc, gone[doc.name], now)

        for start in range(0, len(names), BATCH):
            batch = Named(Kind.JOB, tuple(names[start : start + BATCH]))
            results |= {one.name: one for one in update_until_known(self._store, batch, change).results}
        if results:
            documents.notify()
        calendared = [name for name, one in wanted.items() if calendar_of(one.schedule) is not None]
        if calendared:
            documents.calendars.bring(calendared, documents.late_for)
        _raise_for(results, wanted)
        return {name: result.answer for name, result in results.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """The changes of one job, with what all of them need."""

    late_for: int
    resolve: Resolve
    pauses: Sequence[ScopedPause]
    by: str | None
    note: str | None

    def define(self, doc: Job | Absent, definition: Definition, now: int) -> Change | None:
        if isinstance(doc, Job) and not doc.removed:
            if doc.source is not None:
                return Change(doc, answer=Refusal(Refused.DECLARED))
            if _is(doc, definition):
                return Change(doc, answer=_SAME)
        proposal = registration.Proposal(definition=definition, source=None, by=self.by, note=self.note)
        return registration.define(
            doc, proposal=proposal, now=now, late_for=self.late_for, resolve=self.resolve, pauses=self.pauses
        )

    def remove(self, doc: Job | Absent, seen: Job | None, now: int) -> Change | None:
        if seen is not None and isinstance(doc, Job) and not doc.removed:
            same = (doc.incarnation, doc.source) == (seen.incarnation, seen.source) and _is(doc, seen.definition)
            if not same:
                return Change(doc, answer=_LEFT)
        return registration.remove(
            doc,
            now=now,
            late_for=self.late_for,
            resolve=self.resolve,
            pauses=self.pauses,
            reason=reason_of("the job was removed", self.by, self.note),
        )


def _raise_for(results: Mapping[str, Result], wanted: Mapping[str, Definition]) -> None:
    """Raise for what could not be written; the others are."""
    failed = [one for one in results.values() if one.verdict not in (Verdict.APPLIED, Verdict.DECLINED)]
    if failed:
        raise StoreError(
            f"{len(failed)} of {len(results)} jobs could not be changed, the first of them {failed[0].name} "
            f"({failed[0].error or failed[0].verdict}); the others were. Call it again: what is done stays as it is."
        )
    declared = [name for name, one in results.items() if isinstance(one.answer, Refusal)]
    if declared:
        raise ConflictError(
            f"{_listed(declared)} declared in code since a moment, and was left; the others were changed."
        )
    undecided = [name for name, one in results.items() if name in wanted and one.verdict is Verdict.DECLINED]
    if undecided:
        raise ConflictError(
            f"{_listed(undecided)} under a revision of a calendar that is not in the store, and was left; the others "
            "were changed. Remove it and add it again."
        )


def _defined(proposals: Proposals, spec: JobSpec) -> Definition:
    """Return the definition of one job of a list; an error names the job, because many have the same options."""
    try:
        return proposals.define(spec)
    except (InvalidError, NotFoundError, ConflictError) as error:
        text = str(error)
        if text.startswith((f"{spec.name} ", f"add({spec.name!r}")):
            raise
        undone = "" if "othing was" in text else " Nothing was changed."
        raise type(error)(f"{spec.name}: {text}{undone}") from None


def _by_name(jobs: Iterable[JobSpec]) -> dict[str, JobSpec]:
    """Return the jobs by name; two of one name are a mistake."""
    found: dict[str, JobSpec] = {}
    for job in jobs:
        if not isinstance(job, JobSpec):
            raise InvalidError(
                f"{job!r:.80} is not a JobSpec; write JobSpec(name, handler, schedule, ...). Nothing was changed."
            )
        name = check_name(job.name)
        if name in found:
            raise InvalidError(f"{name} is in the list twice; nothing was changed.")
        found[name] = job
    return found


def _is(job: Job, definition: Definition) -> bool:
    """Return whether a job is defined like this already."""
    stored = job.definition
    return stored.fingerprint == definition.fingerprint and stored.application == definition.application


def _differences(old: Definition, new: Definition) -> tuple[str, ...]:
    """Return the names of the options that differ."""
    before, after = old.to_json(), new.to_json()
    return tuple(sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key)))


def _listed(names: list[str]) -> str:
    """Return a few names, with the verb that follows them."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more} {'is' if len(names) == 1 else 'are'}"
