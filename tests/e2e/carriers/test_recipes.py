"""The recipe for SAQ runs as its page has it, on a real Redis. Those for Huey and Procrastinate run with the page."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from solocron import Run, Scheduler
from tests.servers.redis import Redis

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "queue-recipes.md"


def recipe(name: str) -> str:
    """The first block of a section."""
    found = re.search(rf"^## {name}\n\n```\w+[^\n]*\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


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
    exec(recipe("SAQ").replace("redis://...", url), space)
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
