"""A node of a release that does not exist: its schema is one step ahead, and it writes a field of its own.

    python -m proof.chaos.programs.next_release TARGET --node N --events FILE --lease L

It takes the arguments of `solocron.testing.fleet`. On SQL stores the step adds a column and an index, on Redis a key.
Every job that it writes counts its own writes under `MADE_UP`; nodes of this release must keep that count.
"""

from __future__ import annotations

import sys
from typing import Any

from solocron.model import codec
from solocron.model.documents.job import Job
from solocron.stores.redis import layout
from solocron.stores.redis.caller import Caller
from solocron.stores.sql import migrations
from solocron.stores.sql.migrations import Migration
from solocron.testing.fleet.__main__ import main

__all__ = ["MADE_UP", "NUMBER", "install"]

MADE_UP = "made_up"
NUMBER = 2
"""The number of the next schema, and of the next layout."""
_COLUMN = {
    "sqlite": "ALTER TABLE {jobs} ADD COLUMN %s BIGINT NOT NULL DEFAULT 7",
    "postgres": "ALTER TABLE {jobs} ADD COLUMN IF NOT EXISTS %s BIGINT NOT NULL DEFAULT 7",
    "mysql": "ALTER TABLE {jobs} ADD COLUMN IF NOT EXISTS %s BIGINT NOT NULL DEFAULT 7",
}
_INDEX = "CREATE INDEX IF NOT EXISTS %s ON {jobs} (namespace, %s)"


def install(*, number: int = NUMBER, compatible: int = 1) -> None:
    """Turn this process into one of a later release; `compatible`: the oldest schema whose code works with it."""
    this = migrations.of

    def with_next(folder: str) -> tuple[Migration, ...]:
        names = {each: f"{MADE_UP}_{each}" for each in range(NUMBER, number + 1)}
        steps = [
            Migration(
                each, name, "a column that only a later release knows", (_COLUMN[folder] % name, _INDEX % (name, name))
            )
            for each, name in names.items()
        ]
        return (*this(folder), *steps)

    state_of = codec._state_of

    def with_count(job: Job) -> dict[str, Any]:
        state = state_of(job)
        return {**state, MADE_UP: state.get(MADE_UP, 0) + 1}

    migrations.of = with_next  # type: ignore[assignment]
    migrations.LATEST, migrations.COMPATIBLE = number, compatible
    layout.STEPS, layout.COMPATIBLE = (_add_key,) * (number - 1), compatible
    codec._state_of = with_count


def _add_key(caller: Caller) -> None:
    caller.command("SET", caller.key(MADE_UP), "7", "NX")


if __name__ == "__main__":
    install()
    sys.exit(main())
