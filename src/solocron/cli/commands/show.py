"""`solocron show`: one run with all its attempts and steps."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_run as add_arguments
from solocron.cli.exits import OK
from solocron.cli.moments import utc
from solocron.cli.opening import opened
from solocron.cli.rendering import describe_run, runs_table
from solocron.clock import from_us

if TYPE_CHECKING:
    from solocron.effects.steps import StepView

__all__ = ["add_arguments", "execute"]


def execute(args: Namespace) -> int:
    from solocron.effects.steps import steps_of
    from solocron.views import to_json

    with opened(args) as client:
        run = client.get_run(args.run)
        attempts = client.attempts(args.run)
        steps = steps_of(client.store, args.run)
        if args.json:
            return output.dump(to_json(run) | {"attempts": to_json(attempts), "steps": to_json(steps)})
        output.pairs(describe_run(run, now=from_us(client.store.clock())))
        if len(attempts) > 1 or (attempts and attempts[-1].attempt != run.attempt):
            print()
            runs_table(attempts)
        if steps:
            print()
            output.table(["STEP", "FINISHED (UTC)", "RESULT"], [_step_row(step) for step in steps])
    return OK


def _step_row(step: StepView) -> Sequence[str]:
    value = json.dumps(step.value, ensure_ascii=False)
    return step.name, utc(step.at), value if len(value) <= 60 else value[:57] + "..."
