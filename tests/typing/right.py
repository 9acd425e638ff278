"""A program as users write it: both type checkers must accept every line, and know every type.

`make check` reads it with mypy and pyright, both strict; nothing runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import assert_type

from solocron import (
    AsyncRun,
    AsyncScheduler,
    Backoff,
    Event,
    InvalidError,
    JobOptions,
    JobSpec,
    JobView,
    LockLost,
    NodeView,
    NotFoundError,
    RetryDecision,
    Run,
    RunView,
    Scheduler,
    Status,
    StatusView,
    WaitTimeout,
    allow,
    at,
    catch_up_all,
    cron,
    every,
)
from solocron.service import Identity, Oidc, Role
from solocron.testing.runs import make_async_run, make_run

scheduler = Scheduler("sqlite:///jobs.db", namespace="billing", pools=("default", "reports"), lease="10s")


def ask_the_bank(run: Run) -> RetryDecision:
    return RetryDecision.done("the bank has it") if run.attempt > 1 else RetryDecision.repeat()


@cron("0 9 * * MON-FRI", tz="Europe/Paris", dst={"gap": "skip", "fold": "both"}, retries=3, on_retry=ask_the_bank)
def digest(run: Run) -> int:
    run.check()
    return run.attempt


@every(timedelta(minutes=5), overlap=allow(2), catch_up=catch_up_all(limit=10), backoff=Backoff("1s", cap="1m"))
async def poll(run: AsyncRun) -> str:
    run.progress(1, 2, note="half")
    return run.id


@scheduler.at(datetime(2027, 1, 1, tzinfo=UTC), timeout="1h", run_in="process", memory="512M", cpu=2)
def new_year() -> None: ...


@scheduler.cron("@daily", starts=date(2027, 11, 26), ends="2027-12-24", tags=("sale",), owner="shop")
def christmas() -> None: ...


@scheduler.cron("H H(0-5) * * *", pool="reports", shards=("eu", "us"), limit="db-heavy:2", spread="10m")
def nightly(run: Run, dry: bool = False) -> dict[str, int]:
    return {"attempt": run.attempt if not dry else 0}


class Reports:
    @every("1h", name="hourly-report", prefer="last", payload={"kind": "hourly"})
    def hourly(self, run: Run) -> list[str]:
        return [run.job]


shared: JobOptions = {"retries": 2, "timeout": "30s", "on_lost": "finish"}


@every("10s", **shared)
def frequent() -> None: ...


# A decorated function stays what it was.
assert_type(nightly(Run.__new__(Run), dry=True), dict[str, int])
assert_type(Reports().hourly(Run.__new__(Run)), list[str])
at(datetime(2027, 1, 1, tzinfo=UTC), on_crash="fail")(new_year)


@scheduler.around
def in_a_session(run: Run) -> Iterator[None]:
    yield


@scheduler.on("finished")
def tell(event: Event) -> None:
    if event.outcome != Status.SUCCEEDED:
        print(event.name, event.job, event.slot.astimezone(UTC))


async def who(headers: Mapping[str, str], cookies: Mapping[str, str]) -> Identity | None:
    return Identity("ana", Role.OPERATE) if cookies.get("session") else None


def operate() -> None:
    scheduler.discover("myapp.jobs", Reports())
    scheduler.alarms(late="10m", webhook="https://example.com/hook", secret="a secret of sixteen")
    scheduler.calendar("fr-banking", holidays={date(2027, 5, 1): "Labour Day"}, country="FR")
    assert_type(scheduler.add("report:acme", "nightly", "30 6 * * *", tz="Europe/Vienna", retries=1), JobView)
    spec = scheduler.get_job("report:acme").job_spec()
    assert_type(spec, JobSpec)
    scheduler.add(spec.name, spec.handler, spec.schedule, **spec.options)
    jobs = [JobSpec("invoice:acme", "nightly", "@daily", tz="Asia/Tokyo", retries=1), spec]
    assert_type(scheduler.add_all(jobs), list[str])
    assert_type(scheduler.sync(jobs, within="invoice:", dry_run=True).removed, tuple[str, ...])
    served = scheduler.asgi(auth=who, tokens="tokens", allowed_hosts=["jobs.example.com"], values="never", edit=True)
    issuer = Oidc(issuer="https://accounts.google.com", audience="https://app", email="cron@example.com")
    print(served, scheduler.wsgi(tick=True, oidc=issuer, read_only=True))
    run = scheduler.trigger("digest", {"n": 1}, at=datetime.now(UTC), key="once", by="me", note="why")
    scheduler.pause_all(match="invoice:*", by="me", triggers=True)
    lifted = scheduler.resume_all(match="invoice:*")
    print(None if lifted is None else lifted.scope, [one.until for one in scheduler.pauses()])
    scheduler.backfill("digest", datetime.now(UTC), datetime.now(UTC), only="not_well", key="k", by="me")
    try:
        view = scheduler.wait(run, "10s")
    except WaitTimeout:
        view = scheduler.get_run(run)
    assert_type(view, RunView)
    assert_type(view.slot, datetime)
    assert_type(scheduler.runs("digest", status=("failed", Status.LOST), limit=5), list[RunView])
    scheduler.runs(origin="trigger", node="a", since=datetime.now(UTC))
    print(scheduler.why("digest").verdict, scheduler.accounting(datetime.now(UTC)).due, scheduler.audit(limit=3).next)
    assert_type(scheduler.get_job("digest").running[0].lease_left_s, float | None)
    assert_type(scheduler.upcoming("digest", 3), list[datetime])
    assert_type(scheduler.rerun("digest", view.slot), str)
    assert_type(scheduler.rerun("digest", failed_since=view.slot), list[str])
    status: StatusView = scheduler.status()
    nodes: tuple[NodeView, ...] = status.nodes
    print(len(nodes), status.counts.get("failed", 0))
    try:
        scheduler.pause(scheduler.get_job("digest").name, by="me", until=datetime.now(UTC))
    except (NotFoundError, InvalidError) as error:
        print(error.exit_code)


def tests() -> None:
    assert_type(make_run("digest", payload={"n": 1}, stop="cancel"), Run)
    assert_type(make_async_run(attempt=2), AsyncRun)
    assert_type(scheduler.tick(inline=True), list[RunView])
    scheduler.run_now(digest, {"n": 1})
    scheduler.run_now("nightly", shard="eu")


def effects() -> None:
    with scheduler.lock("door", at_most="5m", wait=True) as held:
        held.check()
    with scheduler.once("receipt:42", keep="90d", on_uncertain="skip") as claim:
        if claim:
            claim.save({"sent": True})
    with scheduler.leader("cache", on_gain=lambda: None) as leader:
        try:
            leader.check()
        except LockLost:
            pass


async def awaited() -> None:
    aio: AsyncScheduler = scheduler.aio
    async with scheduler:
        assert_type(await aio.get_job("digest"), JobView)
        assert_type(await aio.rerun("digest", failed_since=datetime.now(UTC)), list[str])
        assert_type(await scheduler.aio.trigger("digest"), str)
        await scheduler.aio.run_now(poll)


if __name__ == "__main__":
    scheduler.run_forever(grace="1m")
