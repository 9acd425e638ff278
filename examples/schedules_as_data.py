"""Schedules as data: customers choose when their report comes; code only knows how to make one.

    python examples/schedules_as_data.py

Every node that has the handler sees what is added, changed, paused or removed within a second.
"""

from __future__ import annotations

import os

from solocron import Every, Run, Scheduler

scheduler = Scheduler(os.environ.get("SOLOCRON_STORE", "sqlite:///jobs.db"))


@scheduler.register
def send_report(run: Run) -> str:
    """The handler: it has no schedule of its own, and learns from the payload whom it is for."""
    return f"report for {run.payload['customer']}"


def main() -> None:
    with scheduler:  # one of your nodes; the calls below may come from anywhere
        scheduler.add("report-ada", "send_report", "0 7 * * MON-FRI", tz="Europe/London", payload={"customer": "ada"})
        scheduler.add("report-grace", "send_report", Every("1s"), payload={"customer": "grace"})
        for name in ("report-ada", "report-grace"):
            job = scheduler.get_job(name)
            print(f"{job.name:<14} {job.schedule}, next {job.next}")

        run = scheduler.trigger("report-ada", {"customer": "ada, right now"})
        print(f"triggered      {scheduler.wait(run, '30s').result}")

        paused = scheduler.pause("report-grace", by="ops", note="on holiday")
        print(f"paused         {paused.name}: {paused.paused.note if paused.paused else ''}")
        scheduler.resume("report-grace")

        scheduler.add("report-grace", "send_report", "@daily", payload={"customer": "grace"})  # the same name: changed
        print(f"changed        {scheduler.get_job('report-grace').schedule}")
        for name in ("report-ada", "report-grace"):
            scheduler.remove(name)
            print(f"removed        {name}")


if __name__ == "__main__":
    main()
