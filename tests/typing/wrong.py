"""Mistakes that both type checkers must report: each line that ends with `# wrong`, and no other.

`scripts/check_typing.py` compares; nothing runs this file.
"""

from __future__ import annotations

from datetime import UTC, datetime

from solocron import JobOptions, JobSpec, Run, RunView, Scheduler, Status, at, cron, every

scheduler = Scheduler("memory://")
SOON = datetime(2027, 1, 1, tzinfo=UTC)


@every("1m")
def job(run: Run) -> int:
    return run.attempt


def options() -> None:
    cron("@daily", retires=3)  # wrong
    cron("@daily", retries="3")  # wrong
    cron("@daily", tz=1)  # wrong
    cron("@daily", dst={"gap": "later"})  # wrong
    cron("@daily", dst={"hole": "skip"})  # wrong
    every("1m", tz="UTC")  # wrong
    every("1m", overlap="que")  # wrong
    every("1m", catch_up="everything")  # wrong
    every("1m", on_crash="ignore")  # wrong
    every("1m", on_lost="stop")  # wrong
    every("1m", on_stuck="kill")  # wrong
    every("1m", run_in=5)  # wrong
    every("1m", nodes="some")  # wrong
    every("1m", prefer="first")  # wrong
    every("1m", on_holiday="never")  # wrong
    every("1m", on_retry="done")  # wrong
    every("1m", backoff="1s")  # wrong
    at("tomorrow")  # wrong
    at(SOON, 3)  # wrong
    scheduler.cron("@daily", timeuot="5s")  # wrong
    scheduler.every("5s", calendar=3)  # wrong
    scheduler.at(SOON, enabled="no")  # wrong
    scheduler.add("a", "job", "@daily", name="b")  # wrong
    scheduler.add("a", "job", "@daily", on_retry=None)  # wrong
    scheduler.add("a", "job", 3)  # wrong
    JobSpec("a", "job", "@daily", retires=3)  # wrong
    scheduler.sync([], dry_run=True)  # wrong
    every("1m", starts=3)  # wrong
    every("1m", owner=("a", "b"))  # wrong
    scheduler.tick(inline="yes")  # wrong


def decorated() -> None:
    job("run")  # wrong
    text: str = job(Run.__new__(Run))  # wrong
    print(text)


def operated() -> None:
    Scheduler(pools=3)  # wrong
    Scheduler(runtime=None)  # wrong
    scheduler.job("job")  # wrong
    scheduler.get_job(3)  # wrong
    scheduler.trigger("job", at="tomorrow")  # wrong
    scheduler.rerun("job")  # wrong
    scheduler.rerun("job", SOON, failed_since=SOON)  # wrong
    scheduler.once("key", on_uncertain="guess")  # wrong
    scheduler.once("key", connection=object(), keep="90d")  # wrong
    scheduler.on("finished", 3)  # wrong
    view: RunView = scheduler.get_run("job@1")
    view.status = "failed"  # wrong
    print(view.statuss)  # wrong
    print(Status.BROKEN)  # wrong


async def awaited() -> None:
    await scheduler.aio.lunch()  # wrong
    await scheduler.aio.get_job(3)  # wrong
    await scheduler.aio.wait("job@1", time=3)  # wrong
    text: str = await scheduler.aio.jobs()  # wrong
    print(text)


given: JobOptions = {"retires": 3}  # wrong
