"""Put what a command is about to change on record, before it changes it."""

from __future__ import annotations

from argparse import Namespace
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from solocron.cli.author import author_of

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.model.change import Kind

__all__ = ["audited", "audited_act"]


def audited(client: Client, args: Namespace, subject: str) -> AbstractContextManager[object]:
    """Audit the command in these arguments, which has --by and --note; `subject` is a job, a run or a scope.

    A job that is not there leaves no entry: the command itself says so, and a wrong name must write nothing.
    """
    from solocron.model.change import Kind
    from solocron.model.documents.run import job_of

    named = None if subject.startswith("--") else (Kind.JOB, job_of(subject) or subject)
    return audited_act(client, args.command, subject, by=author_of(args), note=args.note, named=named)


def audited_act(
    client: Client,
    act: str,
    subject: str,
    *,
    by: str | None,
    note: str | None,
    named: tuple[Kind, str] | None = None,
) -> AbstractContextManager[object]:
    """Audit an act of the command line; none that is about a `named` document which is not there."""
    from solocron.model.documents.audit import Act

    return client.audited(Act(act=act, subject=subject, via="cli", who=by, note=note), named=named)
