"""The recipes run as their page has them. Those for Huey and Procrastinate run with the page itself."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.environments import Peer, python_of
from solocron import Run, Scheduler
from tests.e2e.carriers import recipes
from tests.servers.redis import Redis

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(recipes.__file__)
RAN_ONCE = {"once": True, "before": "offered", "after": "succeeded"}


def run_apart(*words: object, python: str = sys.executable) -> Any:
    """Run a recipe in a process of its own, and return what it printed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [python, str(PROGRAM), *map(str, words)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")  # SAQ's own, of redis-py
def test_saq(redis_server: Redis, tmp_path: Path) -> None:
    pytest.importorskip("saq")
    from saq import Worker

    url = redis_server.fresh_url()
    scheduler = Scheduler(f"sqlite:///{tmp_path}/shop.db")
    ran: list[str] = []

    @scheduler.cron("0 3 * * *", run_in="saq")
    async def close_books(run: Run) -> None:
        ran.append(run.id)

    space: dict[str, Any] = {"scheduler": scheduler}
    exec(recipes.recipe("SAQ").replace("redis://...", url), space)
    scheduler.carrier("saq", space["SaqCarrier"]())
    scheduler.tick()
    run = scheduler.trigger("close_books")
    scheduler.tick()

    async def work() -> None:
        async with asyncio.timeout(60):
            await Worker(**space["settings"]).process()  # takes one message, and returns when it is carried out
        await space["queue"].disconnect()

    asyncio.run(work())
    assert ran == [run]
    assert scheduler.get_run(run).status == "succeeded"
    scheduler.stop()


def test_django_tasks(tmp_path: Path) -> None:
    assert run_apart("django.tasks", tmp_path) == RAN_ONCE


@pytest.mark.long
def test_arq(redis_server: Redis, tmp_path: Path) -> None:
    """In an environment of its own: arq keeps redis-py below the version that is here."""
    requires = ("arq==0.28.0", "cronsim>=2.8,<3", "tzdata")
    python = python_of(Peer("recipe-arq", "the recipe for arq", "redis", requires), ROOT / "build")
    assert run_apart("arq", tmp_path, redis_server.fresh_url(), python=python) == RAN_ONCE


@pytest.mark.long
def test_docket(redis_server: Redis, tmp_path: Path) -> None:
    """In an environment of its own: nothing else here needs what it brings."""
    requires = ("pydocket==0.27.0", "cronsim>=2.8,<3", "tzdata")
    python = python_of(Peer("recipe-docket", "the recipe for Docket", "redis", requires), ROOT / "build")
    assert run_apart("docket", tmp_path, redis_server.fresh_url(), python=python) == RAN_ONCE


def test_sqs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On moto, which stands for SQS."""
    import boto3
    from moto import mock_aws

    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    scheduler = Scheduler(f"sqlite:///{tmp_path}/shop.db")
    ran: list[str] = []

    @scheduler.cron("0 3 * * *", run_in="sqs")
    def close_books(run: Run) -> None:
        ran.append(run.id)

    with mock_aws():
        url = boto3.client("sqs").create_queue(QueueName="cron")["QueueUrl"]
        space: dict[str, Any] = {"scheduler": scheduler}
        exec(recipes.recipe("SQS").replace("https://sqs...", url), space)
        scheduler.carrier("sqs", space["SqsCarrier"]())
        scheduler.tick()
        run = scheduler.trigger("close_books")
        scheduler.tick()
        assert scheduler.get_run(run).status == "offered"
        space["sqs"].send_message(
            QueueUrl=url,
            MessageBody=space["sqs"].receive_message(QueueUrl=url, VisibilityTimeout=0)["Messages"][0]["Body"],
        )  # a second copy
        space["work"]()
        space["work"]()
    assert ran == [run]
    assert scheduler.get_run(run).status == "succeeded"
    scheduler.stop()
