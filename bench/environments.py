"""An environment of its own for each peer, outside the product's, built when first needed from pinned versions."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PEERS", "Peer", "python_of"]


@dataclass(frozen=True, slots=True)
class Peer:
    """A scheduler that others use for the same work, and what its environment is made of."""

    name: str
    title: str
    store: str
    requires: tuple[str, ...]
    nodes: tuple[int, ...] = (1, 3)
    """How many nodes it can be run with; one where further ones would run everything again."""
    schedules: bool = False
    """Whether its work comes as schedules; else as jobs that are put off to the instant, as a queue has them."""


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "apscheduler3",
            "APScheduler 3.11",
            "postgres",
            ("APScheduler==3.11.0", "SQLAlchemy==2.0.44", "psycopg[binary]==3.3.8", "tzdata==2026.6"),
            (1,),
            schedules=True,
        ),
        Peer(
            "apscheduler4",
            "APScheduler 4.0.0a6",
            "postgres",
            (
                "apscheduler==4.0.0a6",
                "anyio==4.9.0",
                "SQLAlchemy[asyncio]==2.0.44",
                "psycopg[binary]==3.3.8",
                "asyncpg==0.30.0",
            ),
            schedules=True,
        ),
        Peer(
            "procrastinate", "Procrastinate 3.10", "postgres", ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.8")
        ),
        Peer("pgqueuer", "pgqueuer 1.6", "postgres", ("pgqueuer==1.6.0", "asyncpg==0.30.0", "uvloop==0.22.1")),
        Peer(
            "pgqueuer_schedules",
            "pgqueuer 1.6, schedules",
            "postgres",
            ("pgqueuer==1.6.0", "asyncpg==0.30.0", "uvloop==0.22.1"),
            schedules=True,
        ),
        Peer("arq", "arq 0.28", "redis", ("arq==0.28.0",)),
        Peer("saq", "SAQ 0.26", "redis", ("saq[redis]==0.26.4", "typing_extensions==4.16.0")),
        Peer("docket", "Docket 0.27", "redis", ("pydocket==0.27.0",)),
        Peer("celery", "Celery 5.5 beat", "redis", ("celery[redis]==5.5.3",), schedules=True),
        Peer(
            "redbeat",
            "RedBeat 2.3 (Celery 5.5)",
            "redis",
            ("celery[redis]==5.5.3", "celery-redbeat==2.3.3"),
            schedules=True,
        ),
    )
}


def python_of(peer: Peer, folder: Path) -> str:
    """The interpreter of the peer's environment; built now if it is missing or its versions have changed."""
    digest = hashlib.blake2b("\n".join(peer.requires).encode(), digest_size=6).hexdigest()
    place = folder / "environments" / f"{peer.name}-{digest}"
    python = place / "bin" / "python"
    if (place / "ready").exists():
        return str(python)
    print(f"building the environment of {peer.title} ...", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    done = subprocess.run([*pip, *peer.requires], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{peer.title} cannot be installed, so nothing can be compared:\n{done.stderr[-2000:]}")
    (place / "ready").touch()
    return str(python)
