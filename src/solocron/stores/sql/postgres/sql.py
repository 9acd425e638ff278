"""PostgreSQL's statements, put together from the files: selections that lock, and one statement for a whole batch."""

from __future__ import annotations

from functools import cache

from solocron.stores.sql import migrations
from solocron.stores.sql.rows import COLUMNS, NUMBERS
from solocron.stores.sql.statements import Statement, load

__all__ = ["statements", "writing"]

_CLOCK = "(extract(epoch FROM {}()) * 1000000)::bigint"


def _rows(statement: str) -> str:
    columns = ", ".join(f"{name} {'bigint' if name in NUMBERS else 'text'}" for name in COLUMNS[statement])
    # The server expects 100 rows of a function, and would rather read a small table whole than look up 100 keys; its
    # plan is kept while the table grows. All rows are of one namespace, but of a comparison it expects one row.
    rows = f"json_to_recordset(:{statement}) AS r ({columns})"
    return f"(SELECT * FROM {rows} WHERE r.namespace = :namespace) AS r"  # noqa: S608 - our own names


@cache
def statements(prefix: str, schema: str | None) -> dict[str, Statement]:
    """Return PostgreSQL's statements for these table names."""
    words = migrations.words("postgres", prefix, schema) | {
        "share": "FOR SHARE",
        "lock": "FOR UPDATE",
        "pool_is": "= :pool",
        "clock": _CLOCK.format("clock_timestamp"),
        "statement_clock": _CLOCK.format("statement_timestamp"),
        # Not the timeline of the control file: that is the old one for seconds after a promotion.
        "identity": "(SELECT system_identifier || '.' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
        " FROM pg_control_system())",
        "schema": f"'{schema}'" if schema else "current_schema()",
        "text": "TEXT",
        "selection": "{selection}",
        "counts": "{counts}",
    }
    macros = {"in": lambda name: f"= ANY(:{name})", "rows": _rows, "by": lambda name: ""}
    found = load(("common", "postgres"), words, macros, driver="pyformat")
    for name, selection in found.items():
        if name.endswith("_locked"):  # and then the clock, in the same statement
            whole = found["select"].sql.replace("{selection}", selection.sql)
            found[name] = Statement(name, selection.about, whole)
    several = load(("postgres",), words | {"pool_is": "= ANY(:pools)"}, macros, driver="pyformat")["due_jobs"]
    found["due_jobs_of_pools"] = Statement("due_jobs_of_pools", several.about, several.sql)
    return found


@cache
def writing(
    prefix: str,
    schema: str | None,
    writes: tuple[str, ...],
    extras: tuple[str, ...],
    *,
    session: bool,
    own: bool = False,
    gate: bool = False,
    notify: bool,
    recalled: bool = False,
) -> str:
    """One statement for a batch: the parts that it needs, then what must hold for its commit.

    `own`: the batch writes the very session under which it is written. `recalled`: nothing was read before, so our idea
    of the time is compared as well, and the server tells its own.
    """
    sql = statements(prefix, schema)
    parts = [f"{name} AS ({sql[name].sql} RETURNING 1)" for name in writes]
    parts += [f"{name} AS ({sql[name].sql}{' RETURNING 1' if name == 'record_appended' else ''})" for name in extras]
    counts = " + ".join(f"(SELECT count(*) FROM {name})" for name in writes) or "0"  # noqa: S608 - our own names
    answers = [sql["clock"].sql] if recalled else []
    answers.append("SELECT count(*) FROM record_appended" if "record_appended" in extras else "SELECT 0")
    answers += [sql["time_agrees"].sql] if recalled else []
    answers.append(sql["all_written"].sql.replace("{counts}", counts))
    if session:
        answers.append(sql["session_lived" if own else "session_lives"].sql)
    if gate:
        answers.append(sql["gate_is_open"].sql)
    if notify:
        answers.append(sql["notify"].sql)
    before = f"WITH {', '.join(parts)} " if parts else ""
    return f"{before}SELECT {', '.join(f'({answer})' for answer in answers)}"
