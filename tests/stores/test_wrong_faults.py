"""The fault suite is worth its name: stores and servers that are wrong under a fault fail it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis

from solocron.errors import StoreError, StoreRefused, StoreUnavailable
from solocron.stores.contract import Applied, HeldBy, Store, Verdict
from solocron.stores.redis import RedisStore
from solocron.testing.proxy import ChaosProxy
from tests.servers import Redis
from tests.stores.redis import test_faults
from tests.stores.redis.test_faults import RedisVictim

Suite = test_faults.TestRedis


class SaysYes(RedisStore):
    """What it did not hear is taken for done."""

    def update(self, *args: Any, **more: Any) -> Applied:
        applied = super().update(*args, **more)
        told = [replace(r, verdict=Verdict.APPLIED) if r.verdict is Verdict.UNKNOWN else r for r in applied.results]
        return replace(applied, results=tuple(told))


class SaysNo(RedisStore):
    """What it did not hear is taken for not done."""

    def update(self, *args: Any, **more: Any) -> Applied:
        applied = super().update(*args, **more)
        if any(result.verdict is Verdict.UNKNOWN for result in applied.results):
            raise StoreUnavailable("nothing was written")
        return applied


class NeverComesBack(RedisStore):
    """One outage is the end of it."""

    away = False

    def update(self, *args: Any, **more: Any) -> Applied:
        if self.away:
            raise StoreUnavailable("cannot be reached")
        try:
            return super().update(*args, **more)
        except StoreUnavailable:
            self.away = True
            raise


class WakesItself(RedisStore):
    """Its own writes are news to it."""

    def wait(self, timeout: float) -> bool:
        return super().wait(timeout) or timeout > 0


class ShowsItsUrl(RedisStore):
    """Its representation has the URL as it was given, password and all."""

    def __init__(self, url: str, **more: Any) -> None:
        super().__init__(url, **more)
        self._shown = url

    def __repr__(self) -> str:
        return f"ShowsItsUrl({self._shown})"


class TakesARefusalForAnOutage(RedisStore):
    """A wrong password is tried forever."""

    def open(self) -> None:
        try:
            super().open()
        except StoreRefused as error:
            raise StoreUnavailable(str(error)) from error


class ClaimsForTheDead(RedisStore):
    """The session of a claim is not looked at: it claims once more, and again when that claim was swept."""

    def update(self, which: Any, change: Any, *, session: str | None = None, **more: Any) -> Applied:
        if session is None or super().update(which, lambda doc, now: None, session=session).alive:
            return super().update(which, change, **more)
        super().update(which, change, **more)
        for _ in range(100):  # a claim that is still there after a second came after the sweep
            if not self.read(HeldBy(session)):
                break
            threading.Event().wait(0.01)
        return replace(super().update(which, change, **more), alive=False)


class Forgets(RedisVictim):
    """A server that keeps nothing over a crash."""

    def kill(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushdb()
        super().kill()


class Wrong(RedisVictim):
    """A sound server with a wrong store."""

    def __init__(self, server: Redis, url: str, store: type[RedisStore]) -> None:
        super().__init__(server, url)
        self.store = store

    def make(self, url: str, *, lease: timedelta) -> Store:
        return self.store(url, lease=lease)


@contextmanager
def arguments(victim: RedisVictim, caplog: pytest.LogCaptureFixture) -> Iterator[dict[str, Any]]:
    with victim.opened() as near, ChaosProxy.for_url(victim.url) as proxy:
        yield {"victim": victim, "near": near, "proxy": proxy, "caplog": caplog}


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (SaysYes, Suite.test_a_server_that_falls_silent_is_given_up_before_a_third_of_the_lease),
        (SaysNo, Suite.test_a_server_that_falls_silent_is_given_up_before_a_third_of_the_lease),
        (NeverComesBack, Suite.test_a_server_that_is_away_is_unavailable_and_comes_back),
        (WakesItself, Suite.test_what_a_client_writes_itself_is_no_news_to_it),
        (ShowsItsUrl, Suite.test_no_error_log_or_repr_shows_the_password),
        (
            TakesARefusalForAnOutage,
            Suite.test_a_user_that_is_refused_is_told_apart_from_a_server_that_is_away,
        ),
        (ClaimsForTheDead, Suite.test_burying_waits_for_a_claim_that_has_seen_the_session_alive),
        (None, Suite.test_kill_9_of_the_server_between_claim_and_finish_loses_nothing),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_is_wrong_under_a_fault_fails(
    redis_server: Redis, caplog: pytest.LogCaptureFixture, store: type[RedisStore] | None, test: Any
) -> None:
    url = redis_server.fresh_url()
    victim = Forgets(redis_server, url) if store is None else Wrong(redis_server, url, store)
    with arguments(victim, caplog) as known:
        asked = test.__code__.co_varnames[1 : test.__code__.co_argcount]
        with pytest.raises((AssertionError, pytest.fail.Exception, StoreError)):
            test(Suite(), **{name: known[name] for name in asked})


@pytest.mark.parametrize("promise", ["lost_reply", "lost_request"])
def test_a_store_that_asks_again_may_not_be_called_one_that_does_not(
    redis_server: Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, promise: str
) -> None:
    """What the class says of its store is compared to the letter."""
    monkeypatch.setattr(Suite, promise, Verdict.UNKNOWN)
    test = {
        "lost_reply": Suite.test_a_reply_lost_after_the_commit_is_never_guessed,
        "lost_request": Suite.test_a_request_that_never_arrived_wrote_nothing_or_was_made_again,
    }[promise]
    with arguments(RedisVictim(redis_server, redis_server.fresh_url()), caplog) as known, pytest.raises(AssertionError):
        test(Suite(), known["victim"], known["near"], known["proxy"])
