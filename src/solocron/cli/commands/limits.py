"""`solocron limits`: list the limits across jobs, and the runs that have their permits."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_listing as add_arguments
from solocron.cli.exits import OK
from solocron.cli.opening import opened

if TYPE_CHECKING:
    from solocron.views import LimitView

__all__ = ["add_arguments", "execute"]


def execute(args: Namespace) -> int:
    with opened(args) as client:
        found = client.limits()
        if args.json:
            return output.dump_views(found)
        if not found:
            output.note(f"no job of namespace {client.store.namespace!r} names a limit")
            return OK
        output.table(["LIMIT", " MOST", " TAKEN", " WAITING", "JOBS", "BY"], [_row(limit) for limit in found])
    return OK


def _row(limit: LimitView) -> Sequence[str]:
    by = ", ".join(f"{one.run or 'nothing yet'} on {one.node}" for one in limit.taken)
    return limit.name, str(limit.most), str(len(limit.taken)), str(limit.waiting), ", ".join(limit.jobs), by
