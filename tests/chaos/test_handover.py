"""The short form of `make handover`: one queue for half a minute. `tests/e2e/carriers` has a kill on each of them."""

from __future__ import annotations

from argparse import Namespace

import pytest

from proof.handover.command import execute
from tests.servers.fixtures import require
from tests.servers.redis import Redis


@pytest.mark.long
@pytest.mark.parametrize("queue", ["rq", "beats-redis"])
@pytest.mark.may_leak("workers are killed, and their children end with them a moment later")
def test_no_body_begins_twice_and_no_slot_is_lost(queue: str, capsys: pytest.CaptureFixture[str]) -> None:
    require(Redis)
    assert execute(Namespace(queues=[queue], slots=36, beside=False)) == 0, capsys.readouterr().out


def test_a_queue_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(Namespace(queues=["kafka"], slots=1, beside=False)) == 2
    assert "there is no queue 'kafka'; there are celery-redis" in capsys.readouterr().err
