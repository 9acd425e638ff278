"""Jobs in shards, under a limit, and on every node; each body says when it starts and ends."""

from __future__ import annotations

import threading

from solocron import Run, every
from solocron.testing.fleet import witness

_nothing = threading.Event()


@every("1s", name="sharded", shards=("eu", "us", "apac"), retries=20, overlap="queue-all", catch_up="all")
def sharded(run: Run) -> None:
    with witness(run):
        _nothing.wait(0.1)


@every("1s", name="scarce-one", limit="scarce:2", retries=20, overlap="queue-all", catch_up="all")
def scarce_one(run: Run) -> None:
    with witness(run):
        _nothing.wait(0.4)


@every("1s", name="scarce-two", limit="scarce:2", shards=2, retries=20, overlap="queue-all", catch_up="all")
def scarce_two(run: Run) -> None:
    with witness(run):
        _nothing.wait(0.2)


@every("2s", name="everywhere", nodes="all", overlap="queue-all", catch_up="all")
def everywhere(run: Run) -> None:
    with witness(run):
        _nothing.wait(0.05)
