"""Installs Debian packages quietly and leaves no service of theirs running; only root on a Debian can."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLICY = Path("/usr/sbin/policy-rc.d")
"""Debian's own switch: while it answers 101, no package's installation starts a service."""


def possible() -> bool:
    """Return whether this process may install packages."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def install(packages: list[str], *, services: list[str] | None = None) -> bool:
    """Install what is missing; say nothing unless it fails. The services are kept off, now and at the next boot."""
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "-q", "-y"]
    with _no_services():
        # The package lists may be old or absent; an update that fails is no reason not to try.
        _run([*apt, "update"])
        done = _run([*apt, "install", "--no-install-recommends", *packages])
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        print(f"apt-get could not install {' '.join(packages)} (see above)", file=sys.stderr)
        return False
    if services and Path("/run/systemd/system").exists():
        _run(["systemctl", "disable", "--now", *services])
    return True


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    pipe = subprocess.PIPE
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=quiet, check=False
    )


@contextmanager
def _no_services() -> Iterator[None]:
    """Put the switch in place, unless the machine has one of its own."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
