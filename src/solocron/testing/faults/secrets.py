"""Passwords: no error, log line or representation shows one, and a refusal is told apart from an outage."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from solocron.errors import StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import All
from solocron.testing.faults.victim import PASSWORD, SHORT, Victim

__all__ = ["Secrets"]


class Secrets:
    """A user with a password, on a server that may refuse it."""

    def test_no_error_log_or_repr_shows_the_password(self, victim: Victim, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        shown: list[str] = []

        def attempt(what: Callable[[], Any]) -> None:
            try:
                shown.append(repr(what()))
            except Exception as error:  # noqa: BLE001 - what it shows is the point
                shown.extend(traceback.format_exception(error))

        with victim.guarded() as guarded:
            for url in (guarded, *victim.refused(guarded), *victim.broken(guarded)):
                store = victim.make(url, lease=SHORT)
                attempt(store.open)
                attempt(lambda store=store: store)  # type: ignore[misc]
                attempt(lambda store=store: store.checks())  # type: ignore[misc]
                attempt(lambda store=store: vars(store))  # type: ignore[misc]
                attempt(lambda store=store: store.update(All(Kind.JOB), lambda doc, now: None))  # type: ignore[misc]
                store.close()
        text = "\n".join([*shown, caplog.text])
        assert "***@" in text
        assert PASSWORD not in text

    def test_a_user_that_is_refused_is_told_apart_from_a_server_that_is_away(self, victim: Victim) -> None:
        with victim.guarded() as guarded:
            urls = victim.refused(guarded)
            assert urls, "name a URL that your server refuses"
            for url in urls:
                store = victim.make(url, lease=SHORT)
                with pytest.raises(StoreRefused):
                    store.open()
                store.close()
