"""Two Celery beats on one store send every slot once, and go on when one of them is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from solocron import InvalidError
from solocron.carriers.beat import BeatScheduler
from solocron.errors import ConfigurationError
from solocron.testing.fleet import wait_until
from tests.servers.redis import Redis

HERE = Path(__file__).parent
BEAT = ["-m", "celery", "-A", "beat_shop", "beat", "-S", "solocron.carriers.beat:BeatScheduler", "-l", "WARNING"]


@pytest.fixture
def beats(redis_server: Redis, tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    url = redis_server.fresh_url()
    env = {**os.environ, "SHOP_BROKER": url, "SHOP_STORE": f"sqlite:///{tmp_path}/beat.db"}
    started = []
    for n in range(2):
        with (tmp_path / f"beat{n}.log").open("wb") as log:
            pid = ["--pidfile", str(tmp_path / f"beat{n}.pid")]
            started.append(subprocess.Popen([sys.executable, *BEAT, *pid], cwd=HERE, env=env, stdout=log, stderr=log))
    yield url, started
    for process in started:
        process.kill()
        process.wait()


def _sent(url: str) -> list[dict[str, Any]]:
    """The headers of every message in the queue, oldest first."""
    with redis.Redis.from_url(url) as client:
        found = client.lrange("celery", 0, -1)
    return [json.loads(text)["headers"] for text in reversed(found)]  # type: ignore[union-attr, arg-type]


def test_every_slot_is_sent_once_by_one_of_them(beats: tuple[str, list[subprocess.Popen[bytes]]]) -> None:
    url, processes = beats
    wait_until(lambda: len(_sent(url)) >= 3, within=60, what="the beats send")
    processes[0].send_signal(signal.SIGKILL)
    before = len(_sent(url))
    wait_until(lambda: len(_sent(url)) >= before + 4, within=60, what="the other beat goes on")
    headers = _sent(url)
    slots = [one["solocron-slot"] for one in headers]
    # The one that was killed may have died between sending and recording it: then the copy has the id of the first.
    assert len(slots) - len(set(slots)) <= 1
    assert len({(one["solocron-slot"], one["id"]) for one in headers}) == len(set(slots))
    assert {one["task"] for one in headers} == {"shop.say"}
    assert headers[0]["kwargsrepr"] == "{'word': 'hello'}"
    processes[1].terminate()
    assert processes[1].wait(timeout=30) == 0


def test_mistakes_are_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from celery import Celery

    monkeypatch.delenv("SOLOCRON_STORE", raising=False)
    with pytest.raises(ConfigurationError, match="needs a store that all beats share"):
        BeatScheduler(Celery("shop", broker="memory://"))
    app = Celery("shop", broker="memory://")
    app.conf.solocron_store = f"sqlite:///{tmp_path}/beat.db"
    app.conf.beat_schedule = {"x": {"task": "t", "schedule": 1.0, "options": {"solocron": {"colour": 1}}}}
    with pytest.raises(InvalidError, match="beat entry 'x': 'colour' is not one of"):
        BeatScheduler(app)
