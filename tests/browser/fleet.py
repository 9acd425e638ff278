"""A fleet of some hours for the browser: simulated by the shipped engine, then laid into a real SQLite file.

Nodes are killed and frozen, jobs fail, wait, are paused and never run. It ends at the present, so the pages are as
alive as on a real day; what a person or a program may write is hostile wherever it can be.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from solocron import Run, cron, every
from solocron.client import Client
from solocron.clock import SECOND, to_us
from solocron.model.documents.audit import Act
from solocron.model.documents.session import Life, Session
from solocron.stores.url import make_store
from solocron.testing.cluster import Cluster
from solocron.testing.conformance.kit import put

__all__ = ["HOSTILE", "build"]

HOSTILE = "\"><img src=x onerror=alert(1)></td>'{{7*7}}\u202egnp"
_HOURS = 6
_LEASE = "60s"
_LASTS = 3_600 * SECOND
"""For so long the sessions of the file live: no node renews them."""

_cluster: list[Cluster] = []


def _wait(duration: str) -> None:
    _cluster[-1].sleep(duration)


@cron("*/5 * * * *", name="webhooks.flush", tags=("mail",))
def flush() -> None:
    """Work for some seconds."""
    _wait("20s")


@cron("15 * * * *", name="usage.rollup", tz="Europe/Vienna", retries=3, timeout="20m")
def rollup(run: Run) -> dict[str, int]:
    """Work long enough to be killed in the middle."""
    _wait("6m")
    return {"rows": 18211}


@cron("*/30 * * * *", name="dunning.send")
def dunning() -> None:
    """Fail, with an error that would be markup."""
    _wait("8s")
    raise ConnectionError(f"Connection unexpectedly closed {HOSTILE}")


@every("1h", name="etl.load", pool="default")
def load() -> None:
    """Be paused."""
    _wait("40s")


@every("20m", name="reports.daily", overlap="skip")
def reports(run: Run) -> None:
    """Take longer than its period, so that slots are skipped."""
    run.progress(61, 100, HOSTILE)
    _wait("25m")


@cron("0 4 1 1 *", name="reports.yearly")
def yearly() -> None:
    """Never run here."""


def build(file: Path) -> str:
    """Make the file and return the URL of its store."""
    now = datetime.now(UTC)
    declared = (flush, rollup, dunning, load, reports, yearly)
    cluster = Cluster(*declared, nodes=3, start=now - timedelta(hours=_HOURS), lease=_LEASE)
    _cluster.append(cluster)
    cluster.run(f"{_HOURS - 2}h")
    while not cluster.job("usage.rollup").active:
        cluster.run("1m")
    holder = cluster.job("usage.rollup").active[0].node
    victim = next(number for number in range(3) if cluster.process(number).name == holder)
    cluster.freeze(victim)
    cluster.run("4m")
    cluster.thaw(victim)
    cluster.run("40m")
    cluster.kill((victim + 1) % 3)
    cluster.run_until(now)
    url = f"sqlite:///{file}"
    store = make_store(url)
    store.open()
    docs = [_kept(doc, to_us(now)) for doc, _ in cluster.fleet.database.docs.values()]
    records = tuple(cluster.fleet.database.log.values())
    put(store, *docs, records=records)
    client = Client(store)
    with client.audited(Act(act="pause", subject="etl.load", via="cli", who="ana", note=HOSTILE)):
        client.pause("etl.load", by="ana", note=HOSTILE)
    client.calendar("bank", holidays={date(now.year, 12, 25): HOSTILE})
    store.close()
    return url


def _kept(doc: object, now: int) -> object:
    if isinstance(doc, Session) and doc.state is Life.LIVE:
        return replace(doc, expires_at=now + _LASTS, lease=_LASTS)
    return doc
