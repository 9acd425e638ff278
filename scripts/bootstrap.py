"""Builds .venv from requirements/dev.txt, every file checked by its hash, with this project installed editable.

An environment that works is kept and brought up to date; one whose Python is gone is built anew. Several at
once wait for each other. Runs on any Python 3.11+, outside the environment, with the standard library only.
"""

from __future__ import annotations

import fcntl
import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import debian

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "dev.txt"
VENV = ROOT / ".venv"
READY = VENV / ".ready"
"""Newer than the lock and pyproject.toml: nothing to do. `make` looks at it before it calls this script."""


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this script is what tells it
        return _fail(f"Python 3.11 or newer is needed and this is {sys.version.split()[0]}: make PYTHON=python3.12")
    with LOCK.open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if READY.exists() and READY.stat().st_mtime > _newest(LOCK, ROOT / "pyproject.toml"):
            return 0  # another `make` was faster
        return _build()


def _build() -> int:
    began = time.monotonic()
    print("building .venv from requirements/dev.txt ...", flush=True)
    if not _works():
        if importlib.util.find_spec("ensurepip") is None and not _add_ensurepip():
            return _fail("this Python cannot make environments: install python3-venv (as root), then run make again")
        if not _quietly([sys.executable, "-m", "venv", "--clear", str(VENV)]):
            return _fail("python -m venv failed (see above)")
    pip = [
        str(VENV / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "install",
        "--no-compile",
    ]
    if not _quietly([*pip, "--require-hashes", "--no-deps", "-r", str(LOCK)]):
        return _fail("pip could not install the locked packages (see above)")
    if not _quietly([*pip, "--no-build-isolation", "--no-deps", "--editable", str(ROOT)]):
        return _fail("pip could not install the project itself (see above)")
    READY.touch()
    print(f"built .venv in {time.monotonic() - began:.0f} s", flush=True)
    return 0


def _works() -> bool:
    """Return whether the environment exists and its Python still runs."""
    python = VENV / "bin" / "python"
    if not python.exists():
        return False
    return subprocess.run([str(python), "-c", "import pip"], capture_output=True, check=False).returncode == 0


def _add_ensurepip() -> bool:
    """Debian ships it as a package of its own."""
    return debian.possible() and debian.install([f"python3.{sys.version_info.minor}-venv"])


def _newest(*files: Path) -> float:
    return max(file.stat().st_mtime for file in files)


def _quietly(command: list[str]) -> bool:
    """Run it; show what it printed only if it failed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
    return done.returncode == 0


def _fail(reason: str) -> int:
    print(f"solocron: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
