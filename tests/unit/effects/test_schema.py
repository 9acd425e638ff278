"""With `?schema=` all tables of Solocron's are in that schema, those in the user's own transactions included."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from solocron import AsyncRun, InvalidError, Run, Scheduler, StaleFence
from solocron.effects.guard import guard
from tests.servers import Postgres


@pytest.fixture
def database(postgres: Postgres) -> str:
    return postgres.fresh_url()


def tables(url: str) -> set[str]:
    with closing(psycopg.connect(url)) as connection:
        rows = connection.execute(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE tablename LIKE 'solocron%'"
        )
        return {name for (name,) in rows}


def ran(scheduler: Scheduler, job: str, payload: Any = None) -> Any:
    view = scheduler.wait(scheduler.trigger(job, payload), "20s")
    assert view.status == "succeeded", view.error
    return view.result


def declare(scheduler: Scheduler, connect: Callable[[str], psycopg.Connection[Any]]) -> None:
    @scheduler.every("1d", name="bill")
    def bill(run: Run) -> list[Any]:
        """In a schema of the tenant's, as applications with one per tenant have it."""
        with connect(run.payload) as own:
            run.guard(own)
            with run.once("invoice-7", connection=own) as claim:
                first = bool(claim)
                if claim:
                    claim.save({"by": run.payload})
            return [first, claim.value, run.claim_items(own, "items", [1, 2])]


def test_keys_guards_and_items_are_in_the_stores_schema_whatever_the_connections_search_path_is(database: str) -> None:
    with closing(psycopg.connect(database, autocommit=True)) as admin:
        for tenant in ("ada", "bob"):
            admin.execute(f"CREATE SCHEMA {tenant}")

    def connect(tenant: str) -> psycopg.Connection[Any]:
        return psycopg.connect(database, options=f"-c search_path={tenant}")

    scheduler = Scheduler(f"{database}?schema=cron", enabled=True, lease="3s")
    declare(scheduler, connect)

    @scheduler.every("1d", name="coroutine")
    async def coroutine(run: AsyncRun) -> bool:
        async with await psycopg.AsyncConnection.connect(database) as own:
            await run.guard(own)
            async with run.once("invoice-7", connection=own) as claim:
                return bool(claim)

    with scheduler:
        assert ran(scheduler, "bill", "ada") == [True, {"by": "ada"}, [1, 2]]
        assert ran(scheduler, "bill", "bob") == [False, {"by": "ada"}, []], "one key, one effect, for every caller"
        assert ran(scheduler, "coroutine") is False
        with scheduler.lock("mail") as held, connect("ada") as own:
            held.guard(own)
        with connect("bob") as own, scheduler.once("invoice-7", connection=own) as claim:
            assert not claim
    assert {name for name in tables(database) if name.endswith(("guards", "keys"))} == {
        "cron.solocron_guards", "cron.solocron_keys",
    }  # fmt: skip
    assert {name.partition(".")[0] for name in tables(database)} == {"cron"}


def test_a_stale_fence_is_seen_across_search_paths(database: str) -> None:
    with closing(psycopg.connect(database)) as one, closing(psycopg.connect(database)) as two:
        guard(one, scope="default/job", fence=6, schema="cron")
        one.commit()
        two.execute("SET search_path = pg_catalog")
        with pytest.raises(StaleFence, match="has seen 6"):
            guard(two, scope="default/job", fence=5, schema="cron")


def test_without_a_schema_the_connections_own_search_path_counts_as_before(database: str) -> None:
    with closing(psycopg.connect(database)) as own:
        guard(own, scope="default/job", fence=6)
        own.commit()
    assert tables(database) == {"public.solocron_guards"}


def test_in_another_database_the_schema_is_made_or_asked_for_without_harm_to_the_transaction(
    database: str, postgres: Postgres
) -> None:
    """The store's schema need not exist where the user's data is; an error of the server would cost the transaction."""
    other = postgres.fresh_url()
    name = psycopg.conninfo.conninfo_to_dict(other)["dbname"]
    with closing(psycopg.connect(other, autocommit=True)) as admin:
        admin.execute(f"CREATE ROLE of_{name} LOGIN")
        admin.execute("CREATE TABLE invoices (id int)")
        admin.execute(f"GRANT INSERT ON invoices TO of_{name}")
        with closing(psycopg.connect(other, user=f"of_{name}")) as own:
            own.execute("INSERT INTO invoices VALUES (1)")
            with pytest.raises(InvalidError, match=r'CREATE SCHEMA IF NOT EXISTS "cron"; .*"cron".solocron_guards'):
                guard(own, scope="default/job", fence=6, schema="cron")
            own.commit()
            admin.execute("CREATE SCHEMA cron")
            with pytest.raises(InvalidError, match=r'CREATE TABLE IF NOT EXISTS "cron".solocron_guards'):
                guard(own, scope="default/job", fence=6, schema="cron")
            own.execute("INSERT INTO invoices VALUES (2)")
            own.commit()
        with closing(psycopg.connect(other)) as mighty:
            guard(mighty, scope="default/job", fence=6, schema="cron")
            mighty.commit()
        with closing(psycopg.connect(other, user=f"of_{name}")) as own:
            with pytest.raises(InvalidError, match=rf'GRANT USAGE ON SCHEMA "cron" TO of_{name}'):
                guard(own, scope="default/job", fence=6, schema="cron")
            own.rollback()
            admin.execute(f"GRANT USAGE ON SCHEMA cron TO of_{name}")
            admin.execute(f"GRANT SELECT, INSERT, UPDATE ON cron.solocron_guards TO of_{name}")
            guard(own, scope="default/job", fence=7, schema="cron")
            own.commit()
        assert admin.execute("SELECT count(*) FROM invoices").fetchone() == (2,)
