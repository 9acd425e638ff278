"""Check-ins for Sentry with the real SDK and a transport that keeps what would be sent."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

with warnings.catch_warnings():  # it looks at eventlet, which is deprecated and says so
    warnings.simplefilter("ignore")
    import sentry_sdk

from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from solocron import ConfigurationError, Event, MissingExtra, Scheduler

SLOT = datetime(2026, 11, 17, 3, tzinfo=UTC)
STARTED = {"run": "nightly@1", "first": True, "origin": "schedule"}
ENDED = {
    "run": "nightly@1", "slot": SLOT, "attempt": 1, "origin": "schedule", "outcome": "succeeded", "final": True,
    "duration_s": 2.0, "exception": None,
}  # fmt: skip


class Kept(Transport):
    """Keeps envelopes instead of sending them."""

    items: list[dict[str, Any]]

    def capture_envelope(self, envelope: Envelope) -> None:
        self.items += [item.payload.json for item in envelope.items if item.payload.json is not None]


@pytest.fixture
def kept() -> Iterator[Kept]:
    transport = Kept()
    transport.items = []
    sentry_sdk.init(
        "https://key@sentry.example.com/1", transport=transport, default_integrations=False,
        auto_enabling_integrations=False,
    )  # fmt: skip
    yield transport
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)


def made(**options: Any) -> Scheduler:
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.cron("0 3 * * *", name="nightly", tz="Europe/Vienna", timeout="90s")(lambda: None)
    scheduler.every("2h", name="often")(lambda: None)
    scheduler.every("10s", name="too-often")(lambda: None)
    scheduler.cron("H 3 * * *", name="spread")(lambda: None)
    scheduler.sentry(**options)
    return scheduler


def tell(scheduler: Scheduler, name: str, job: str = "nightly", **facts: Any) -> None:
    for subscriber, wants in scheduler.events._subscribers["*"]:
        if wants is not None and type(subscriber).__name__ == "CheckIns" and wants(name):
            subscriber(Event(name, {"job": job, **facts}))


def statuses(kept: Kept) -> list[tuple[str, str]]:
    return [(item["monitor_slug"], item["status"]) for item in kept.items if item.get("type") == "check_in"]


def test_a_run_is_one_check_in_whichever_node_ends_it(kept: Kept) -> None:
    """Its first attempt dies with its node, the second one succeeds elsewhere: one green check-in."""
    one, other = made(), made()
    tell(one, "started", **STARTED)
    tell(
        other,
        "taken over",
        runs=({"run": "nightly@1", "attempt": 1, "origin": "schedule", "node": "a", "final": False},),
    )
    tell(other, "started", **STARTED | {"first": False})
    tell(other, "finished", **ENDED | {"attempt": 2})
    assert statuses(kept) == [("nightly", "in_progress"), ("nightly", "ok")]
    assert len({item["check_in_id"] for item in kept.items}) == 1
    assert kept.items[0]["monitor_config"] == {
        "schedule": {"type": "crontab", "value": "0 3 * * *"}, "timezone": "Europe/Vienna", "checkin_margin": 1,
        "max_runtime": 2,
    }  # fmt: skip


def test_a_run_that_is_lost_for_good_is_closed_by_the_node_that_buried_it(kept: Kept) -> None:
    scheduler = made()
    tell(
        scheduler,
        "taken over",
        runs=({"run": "nightly@1", "attempt": 1, "origin": "schedule", "node": "a", "final": True},),
    )
    assert statuses(kept) == [("nightly", "error")]


def test_a_retried_error_is_a_warning_and_the_last_one_an_error(kept: Kept) -> None:
    scheduler, error = made(), ValueError("no paper")
    tell(scheduler, "finished", **ENDED | {"outcome": "failed", "final": False, "exception": error})
    tell(scheduler, "finished", **ENDED | {"outcome": "failed", "attempt": 2, "exception": error})
    events = [item for item in kept.items if "exception" in item]
    assert [(event["level"], event["tags"]["solocron.attempt"]) for event in events] == [
        ("warning", "1"),
        ("error", "2"),
    ]
    assert events[0]["tags"]["solocron.job"] == "nightly"
    assert statuses(kept) == [("nightly", "error")]


def test_schedules_that_sentry_cannot_express_and_triggers_are_left_out(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = made(exclude=["often"], slugs={"nightly": "the-books"})
    caplog.set_level("INFO")
    for job in ("too-often", "spread", "too-often", "often", "unknown"):
        tell(scheduler, "started", job, **STARTED)
    tell(scheduler, "started", **STARTED | {"origin": "trigger"})
    assert statuses(kept) == []
    assert [record.getMessage().split(" has")[0] for record in caplog.records] == ["too-often", "spread", "unknown"]
    tell(scheduler, "started", **STARTED)
    assert statuses(kept) == [("the-books", "in_progress")]


def test_a_period_is_an_interval(kept: Kept) -> None:
    scheduler = made()
    tell(scheduler, "started", "often", **STARTED)
    assert kept.items[0]["monitor_config"]["schedule"] == {"type": "interval", "value": 2, "unit": "hour"}


def test_mistakes_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="was called before"):
        made().sentry()
    with pytest.raises(ConfigurationError, match="is not a slug of Sentry"):
        Scheduler("memory://", enabled=True).sentry(slugs={"job": "A Slug"})
    monkeypatch.setitem(sys.modules, "solocron.telemetry.sentry", None)
    with pytest.raises(MissingExtra, match=r"solocron\[sentry\]"):
        Scheduler("memory://", enabled=True).sentry()
