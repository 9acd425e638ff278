"""Add imported jobs, keep a receipt of them, and undo exactly what a receipt lists. An import changes no other job."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from solocron.author import check_author
from solocron.client import Client
from solocron.clock import iso
from solocron.errors import InvalidError, SolocronError, StoreError
from solocron.importers.entry import ImportedJob, reason
from solocron.jobs.declaration import Declaration
from solocron.model.documents.job import Job
from solocron.stores.contract import Store
from solocron.stores.paging import find_job

__all__ = ["Added", "ImportResult", "Undone", "add_jobs", "check_job", "there_already", "undo"]

_FORMAT = 1
_LINES = ({"job", "incarnation", "fingerprint"}, {"job", "adding", "instead_of"}, {"job", "refused"})
"""Keys of the lines of a receipt: a job that is there, one that is being added, one that was refused."""


class ImportResult(StrEnum):
    """Outcomes of adding one job."""

    ADDED = "added"
    THERE = "there already"
    REFUSED = "refused"
    REMOVED = "removed"
    GONE = "gone already"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Added:
    """One job of an import, and why it was not added."""

    job: ImportedJob
    result: ImportResult
    why: str = ""


@dataclass(frozen=True, slots=True)
class Undone:
    """One job of a receipt, and why it was kept."""

    job: str
    result: ImportResult
    why: str = ""


def check_job(job: ImportedJob, **instead: Any) -> str:
    """Return the fingerprint of the definition that would be added; raise if it is not valid."""
    given: Any = {**job.options, **instead}
    return Declaration.make(job.schedule, given, name=job.name).define(job.name, job.handler)[0].fingerprint


def there_already(store: Store, job: ImportedJob) -> Added | None:
    """Return what an import would find under the name of a job; None if it is free."""
    there = find_job(store, job.name)
    if there is None or there.removed:
        return None
    if there.definition.fingerprint == check_job(job):
        return Added(job, ImportResult.THERE)
    return Added(job, ImportResult.REFUSED, f"there is another job named {job.name}; it was not changed.")


def add_jobs(
    client: Client,
    jobs: Iterable[ImportedJob],
    receipt: Path,
    origin: str,
    *,
    by: str | None = None,
    note: str | None = None,
) -> Iterator[Added]:
    """Add each job that is not there; each keeps the author and the note.

    The receipt is made first. It lists each job before anything of it is written, so that an import which is cut off at
    any place can be undone, and once more when it is there.
    """
    check_author(by, note, undone="nothing was imported")
    store = client.store
    head = {"solocron_import": _FORMAT, "from": origin, "namespace": store.namespace, "at": iso(store.clock())}
    try:
        file = receipt.open("x", encoding="utf-8")
    except FileExistsError:
        raise InvalidError(f"{receipt} exists already; name another --receipt. Nothing was imported.") from None
    except OSError as error:
        raise InvalidError(f"{receipt} cannot be written: {error.strerror}. Nothing was imported.") from None

    def enter(line: dict[str, Any]) -> None:
        print(json.dumps(line), file=file, flush=True)

    with file:
        enter(head)
        for job in jobs:
            yield there_already(store, job) or _add(client, job, enter, by, note)


def _add(
    client: Client, job: ImportedJob, enter: Callable[[dict[str, Any]], None], by: str | None, note: str | None
) -> Added:
    removed = find_job(client.store, job.name)
    stages = [check_job(job, enabled=False), check_job(job)] if job.paused else [check_job(job)]
    enter({"job": job.name, "adding": stages, "instead_of": None if removed is None else removed.incarnation})
    begun = False
    try:
        if job.paused:
            # Off first, so that no slot can start before the pause is written.
            off: dict[str, Any] = {**job.options, "enabled": False}
            client.add(job.name, job.handler, job.schedule, by=by, note=note, **off)
            begun = True
            client.pause(job.name, by=by or "import", note="it was switched off where it came from")
        client.add(job.name, job.handler, job.schedule, by=by, note=note, **job.options)
    except StoreError:
        raise
    except SolocronError as error:
        if begun:
            client.remove(job.name, by=by, note=note)
        enter({"job": job.name, "refused": True})
        return Added(job, ImportResult.REFUSED, reason(error))
    doc = find_job(client.store, job.name)
    if doc is not None:
        enter({"job": job.name, "incarnation": doc.incarnation, "fingerprint": doc.definition.fingerprint})
    return Added(job, ImportResult.ADDED)


def undo(client: Client, receipt: Path, *, by: str | None = None, note: str | None = None) -> Iterator[Undone]:
    """Remove the jobs of a receipt that are as the import left them; keep what was changed or declared since."""
    check_author(by, note, undone="nothing was removed")
    for name, line in _read(receipt, client.store.namespace).items():
        doc = find_job(client.store, name)
        if "adding" in line:
            if doc is None or doc.removed or doc.incarnation == line["instead_of"]:
                continue  # it was cut off before anything was written
            same, fingerprints = True, line["adding"]
        else:
            same = doc is not None and doc.incarnation == line["incarnation"]
            fingerprints = [line["fingerprint"]]
        if doc is None or doc.removed or not same:
            yield Undone(name, ImportResult.GONE if doc is None or doc.removed else ImportResult.KEPT, _since(doc))
        elif doc.source is not None:
            yield Undone(name, ImportResult.KEPT, "code declares it now")
        elif doc.definition.fingerprint not in fingerprints:
            yield Undone(name, ImportResult.KEPT, "it was changed since")
        else:
            client.remove(name, by=by, note=note)
            yield Undone(name, ImportResult.REMOVED)


def _since(doc: Job | None) -> str:
    return "" if doc is None or doc.removed else "it was removed and added again since"


def _read(receipt: Path, namespace: str) -> dict[str, dict[str, Any]]:
    """Return the last line of each job that was not refused."""
    try:
        head, *lines = [json.loads(line) for line in receipt.read_text(encoding="utf-8").splitlines()]
        good = head["solocron_import"] == _FORMAT and all(any(keys <= line.keys() for keys in _LINES) for line in lines)
    except OSError as error:
        raise InvalidError(f"{receipt} cannot be read: {error.strerror}. Nothing was removed.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        good, head, lines = False, {}, []
    if not good:
        raise InvalidError(f"{receipt} is not the receipt of an import. Nothing was removed.")
    if head["namespace"] != namespace:
        raise InvalidError(
            f"{receipt} is of the namespace {head['namespace']!r}, and this is {namespace!r}; give --namespace. "
            "Nothing was removed."
        )
    last = {line["job"]: line for line in lines}
    return {name: line for name, line in last.items() if "refused" not in line}
