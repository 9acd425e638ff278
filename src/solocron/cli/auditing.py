"""Put what a command is about to change on record, before it changes it."""

from __future__ import annotations

from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from solocron.cli.author import author_of

if TYPE_CHECKING:
    from solocron.client import Client

__all__ = ["audited"]


def audited(client: Client, args: Namespace, subject: str) -> AbstractContextManager[object]:
    """Audit the command in these arguments, which has --by and --note; `subject` is a job, a run or a scope.

    A job that is not there leaves no entry: the command itself says so, and a wrong name must write nothing.
    """
    from solocron.model.documents.audit import Act
    from solocron.model.documents.run import job_of
    from solocron.stores.paging import find_job

    if not subject.startswith("--") and find_job(client.store, job_of(subject) or subject) is None:
        return nullcontext()
    act = Act(act=args.command, subject=subject, via="cli", who=author_of(args), note=args.note)
    return client.audited(act)
