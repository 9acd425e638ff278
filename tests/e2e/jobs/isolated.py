"""Jobs in processes of their own, which leave signs of life; each second starts one or two processes."""

from __future__ import annotations

from solocron import Run, every
from solocron.testing.fleet import witness
from tests.e2e.jobs.endless import live


@every("1s", name="isolated", run_in="process", retries=20, overlap="queue-all", catch_up="all")
def isolated(run: Run) -> None:
    with witness(run):
        live(run, 0.2)


@every("2s", name="isolated-longer", run_in="process", memory="256M", retries=20, overlap="queue-all", catch_up="all")
def isolated_longer(run: Run) -> None:
    with witness(run):
        live(run, 0.7)
