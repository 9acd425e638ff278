"""The file by which a node tells other processes of this machine that it is alive: written each beat, replaced at once.

A probe reads it and never asks the store: whether a process must be restarted is not a question for a database. The
age of a file is measured on the boot clock, which both processes share, so that a step of the wall clock changes
nothing.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from solocron.clock import SystemClock
from solocron.errors import ConfigurationError
from solocron.views import HealthView, to_json
from solocron.views.health import aged

__all__ = ["VARIABLE", "HealthFile", "health_folder", "read_health"]

log = logging.getLogger("solocron")

VARIABLE = "SOLOCRON_HEALTH_DIR"
_OLD = 86_400.0
"""Seconds after which a file is removed although its process cannot be looked for, because it is of another host."""
_ENDED = ("Z", "X")
"""States of a process whose parent has not asked for its end yet."""
_SIZE = 64 * 1024
"""Bytes of a file that are read at most; a node writes less than a kilobyte."""


def health_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder that `SOLOCRON_HEALTH_DIR` names, or the default one; None if it is switched off."""
    named = environ.get(VARIABLE, "").strip()
    if named.lower() == "off":
        return None
    if named and not Path(named).is_absolute():
        raise ConfigurationError(
            f"{VARIABLE}={named!r:.80} is not an absolute path; nothing was started. Name a folder, or `off`."
        )
    if named:
        return Path(named)
    try:
        return Path(tempfile.gettempdir()) / f"solocron-{os.geteuid()}"
    except FileNotFoundError:  # a container without any folder that can be written to
        return Path(os.sep, "tmp", f"solocron-{os.geteuid()}")


class HealthFile:
    """The file of one node. If it cannot be written, that is logged once and stops nothing."""

    def __init__(self, folder: Path, *, namespace: str, node: str, pid: int) -> None:
        self._folder = folder
        self._path = folder / f"{namespace}.{node}.{pid}.json"
        self._draft = folder / f".{namespace}.{node}.{pid}.draft"
        found = _process_stat(pid)
        self._started = None if found is None else found.start
        self._failed = False

    @classmethod
    def make(cls, *, namespace: str, node: str, host: str, pid: int) -> HealthFile | None:
        """Make the folder and remove the files of dead nodes from it; refuse a named folder that cannot be used."""
        folder = health_folder()
        if folder is None:
            return None
        made = cls(folder, namespace=namespace, node=node, pid=pid)
        named = bool(os.environ.get(VARIABLE, "").strip())
        try:
            _make_folder(folder, ours=not named)
        except OSError as error:
            if named:
                raise ConfigurationError(
                    f"{VARIABLE}={str(folder)!r:.200} cannot be used ({error.strerror or error}); nothing was started. "
                    "Name a folder that this process may write to, or `off`."
                ) from None
            made._trouble(error)
            return made
        made._clean(host)
        return made

    def write(self, view: HealthView) -> None:
        """Replace the file; a reader sees the old one or the new one, never a part."""
        said = to_json(view) | {"boot": SystemClock.boot(), "process_start": self._started}
        try:
            self._write(json.dumps(said).encode())
        except OSError as error:
            self._trouble(error)
        else:
            self._failed = False

    def remove(self) -> None:
        for path in (self._path, self._draft):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _write(self, said: bytes) -> None:
        # Whatever has the name of the draft, a link included, is removed and not followed.
        self._draft.unlink(missing_ok=True)
        made = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.write(made, said)
        finally:
            os.close(made)
        os.replace(self._draft, self._path)

    def _trouble(self, error: OSError) -> None:
        if self._failed:
            return
        self._failed = True
        log.warning(
            "the health file cannot be written; the node runs all the same, and `solocron health` does not see it "
            "[file=%s error=%s]",
            self._path,
            error.strerror or error,
            extra={"event": "health file"},
        )

    def _clean(self, host: str) -> None:
        """Remove the files of nodes that are gone: a process that was killed leaves its file behind."""
        for found in _files(self._folder):
            if found.is_gone() if found.view.host == host else found.unchanged_for > _OLD:
                with suppress(OSError):
                    found.path.unlink(missing_ok=True)
        for draft in self._folder.glob(".*.draft"):
            with suppress(OSError):
                if time.time() - draft.lstat().st_mtime > _OLD:
                    draft.unlink()


def read_health(folder: Path) -> list[HealthView]:
    """Return the health of every node of this machine that has a file in the folder. Nothing is changed."""
    host, boot = os.uname().nodename, SystemClock.boot
    # The clock is read after the file: a node may write at any moment.
    found = [
        aged(file.view, boot() - file.boot, gone=file.is_gone()) for file in _files(folder) if file.view.host == host
    ]
    return sorted(found, key=lambda view: (view.namespace, view.node, view.pid))


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    view: HealthView
    boot: float
    """Boot time at which it was written."""
    process_start: int | None
    unchanged_for: float
    """Seconds since it was written, by the wall clock."""

    def is_gone(self) -> bool:
        """Return whether its process has ended, perhaps unnoticed by its parent; its number may be another's by now."""
        try:
            os.kill(self.view.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        found = _process_stat(self.view.pid)
        if found is None:
            return False
        return found.state in _ENDED or (self.process_start is not None and found.start != self.process_start)


def _files(folder: Path) -> Iterator[_File]:
    """Yield what nodes wrote into the folder; files that are none of theirs are passed over."""
    known = {field.name for field in fields(HealthView)}
    for path in sorted(folder.glob("*.json")):
        try:
            with path.open("rb") as file:
                said = json.loads(file.read(_SIZE))
                changed = os.fstat(file.fileno()).st_mtime
            view = HealthView(
                **{name: value for name, value in said.items() if name in known} | {"why": tuple(said["why"])}
            )
            yield _File(path, view, float(said["boot"]), said["process_start"], time.time() - changed)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue


@dataclass(frozen=True, slots=True)
class _ProcessStat:
    state: str
    start: int
    """When it started, in ticks since boot."""


def _process_stat(pid: int) -> _ProcessStat | None:
    """Return what the system says of a process; None where it does not say (macOS)."""
    try:
        # The name of the program, in parentheses, may hold anything.
        found = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return _ProcessStat(state=found[0], start=int(found[19]))
    except (OSError, ValueError, IndexError):
        return None


def _make_folder(folder: Path, *, ours: bool) -> None:
    """Make the folder. The default one lies in a folder of all users: one that another user made is refused."""
    folder.mkdir(mode=0o700, parents=not ours, exist_ok=True)
    found = folder.lstat()
    if ours and (not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid()):
        raise PermissionError(f"{folder} is not a folder of this user")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError("it cannot be written to")
