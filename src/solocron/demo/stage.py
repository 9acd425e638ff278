"""Set up the store, the fleet and the screen for the demo, and clean up afterwards; `play` has the plot."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from solocron.demo.dashboard import Dashboard
from solocron.demo.play import LEASE, Play
from solocron.demo.screen import Screen, make_screen
from solocron.errors import SolocronError, StoreError
from solocron.stores.url import parse
from solocron.testing.fleet import Fleet, FleetVerdict

__all__ = ["perform"]

JOBS = "solocron.demo.jobs"


def perform(*, seconds: float, replicas: int, store: str | None, as_json: bool, serve: bool = False) -> int:
    """Run the demo, show the verdict, and leave nothing behind unless it failed."""
    folder = Path(tempfile.mkdtemp(prefix="solocron-demo-"))
    keep = True
    try:
        screen = make_screen(silent=as_json)
        verdict = _play(folder, seconds=seconds, replicas=replicas, store=store, screen=screen, serve=serve)
        keep = not verdict.clean
        if as_json:
            sys.stdout.write(json.dumps(verdict.to_json()) + "\n")
    except SolocronError:
        keep = False
        raise
    except (RuntimeError, TimeoutError) as error:  # a replica died, or an expected event did not happen
        sys.stderr.write(f"The demo could not be played to its end: {error}\n")
    except KeyboardInterrupt:
        keep = False
        return 130
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if keep:
        sys.stderr.write(f"The ledger and the logs of the replicas are kept in {folder}.\n")
    return 1 if keep else 0


def _play(
    folder: Path, *, seconds: float, replicas: int, store: str | None, screen: Screen, serve: bool = False
) -> FleetVerdict:
    url = store or f"sqlite:///{folder / 'demo.db'}"
    namespace = "default" if store is None else f"demo-{secrets.token_hex(4)}"
    with ExitStack() as stack:
        stack.enter_context(screen)
        dashboard = stack.enter_context(Dashboard(url, namespace)) if serve else None
        fleet = stack.enter_context(
            Fleet([JOBS], store=url, folder=folder, namespace=namespace, lease=LEASE, grace="20s")
        )
        if dashboard is not None:
            screen.say(f"the dashboard: {dashboard.link}")
        where = "a temporary SQLite file" if store is None else f"{parse(store).masked}, namespace {namespace}"
        screen.say(f"{replicas} replicas on {where}; lease {LEASE:g} s")
        try:
            verdict = Play(fleet, screen, seconds=seconds).perform(replicas)
        finally:
            if store is not None:
                _clean_up(fleet)
        screen.tell(verdict, lease=LEASE)
        if dashboard is not None:
            screen.say(f"the dashboard stays at {dashboard.address} until Ctrl-C")
            dashboard.wait()
    return verdict


def _clean_up(fleet: Fleet) -> None:
    """Remove the demo's jobs from a store of the user; its records are pruned like all others."""
    for declared in fleet.scheduler.registry:
        try:
            fleet.scheduler.remove(declared.name)
        except (StoreError, LookupError):
            pass
