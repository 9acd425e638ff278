"""Put what a program asks for in a person's name on record, before it is done."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from solocron.model.change import Kind
from solocron.model.documents.audit import Act
from solocron.model.documents.run import job_of
from solocron.scheduler.core import Core

__all__ = ["audited", "audited_job"]


def audited(
    core: Core, act: str, subject: str, *, by: str | None, note: str | None, named: tuple[Kind, str] | None = None
) -> AbstractContextManager[object]:
    """Audit an act that names its author.

    Without an author nothing is written: every trigger of a program would be two more writes.
    """
    if by is None:
        return nullcontext()
    return core.open().audited(Act(act=act, subject=subject, via="python", who=by, note=note), named=named)


def audited_job(
    core: Core, act: str, subject: str, *, by: str | None, note: str | None
) -> AbstractContextManager[object]:
    """Audit an act on a job or a run; one that is not there leaves no entry."""
    return audited(core, act, subject, by=by, note=note, named=(Kind.JOB, job_of(subject) or subject))
