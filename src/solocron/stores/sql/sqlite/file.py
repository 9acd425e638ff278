"""Check the place of a SQLite file: no symbolic link, no folder that every user may write to, no network."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from solocron.errors import EmptyStore, InvalidError, StoreRefused
from solocron.stores.url import StoreUrl
from solocron.stores.weakness import nothing_at

__all__ = ["DOUBTFUL", "Place", "filesystem_of", "is_refused", "place_of"]

REFUSED = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "ocfs2", "gfs2", "davfs")
)
"""File systems whose locks or shared memory do not reach, or do not bind, every machine that has them mounted."""
DOUBTFUL = frozenset({"virtiofs", "vboxsf", "vmhgfs", "prl_fs"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where the database is, and its two companions that are ours."""

    path: Path

    @property
    def turns(self) -> Path:
        return self.path.with_name(self.path.name + "-turns")

    @property
    def uri(self) -> str:
        """The path for a connection that never makes the file, and that SQLite itself keeps from writing.

        Where no process has it open there is no write-ahead log, and `mode=ro` would leave an empty one behind: it may
        make one, but not remove it. There `PRAGMA query_only` is what keeps it from writing.
        """
        mode = "ro" if self.path.with_name(self.path.name + "-wal").exists() else "rw"
        return f"{self.path.as_uri()}?mode={mode}"

    def create(self) -> None:
        """Make sure that the file is there, is ours alone if we make it, and is in a place that can be trusted."""
        self._check_folder()
        if self.identity() is None:
            self._make()
        self._check("writing", os.R_OK | os.W_OK)

    def look(self) -> None:
        """As `create`, but a file that is not there stays missing."""
        if self.identity() is None:
            raise EmptyStore(nothing_at(f"sqlite:///{self.path}", "there is no such file"))
        self._check_folder()
        self._check("reading", os.R_OK)

    def _make(self) -> None:
        """Make an empty file, unless another process is faster.

        It gets its name only after its descriptor is closed: a process loses all its locks on a file when it closes any
        descriptor of it, those of SQLite too. Without them another process takes the file for its own, and removes the
        write-ahead log under this one. For the same reason a file that is there is never opened here.
        """
        made = self.path.with_name(f"{self.path.name}-new-{secrets.token_hex(8)}")
        try:
            os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            try:
                os.link(made, self.path)
            except PermissionError:  # a file system without links, where a rename may replace what came meanwhile
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            finally:
                os.unlink(made)
        except FileExistsError:
            pass
        except OSError as error:
            raise self._refusal(error.strerror, "writing") from None

    def _check(self, why: str, access: int) -> None:
        try:
            found = os.stat(self.path, follow_symlinks=False)
        except OSError as error:
            raise self._refusal(error.strerror, why) from None
        if stat.S_ISLNK(found.st_mode):
            raise self._refusal("it is a link", why)
        if not stat.S_ISREG(found.st_mode):
            raise StoreRefused(f"{self.path} is not a file; nothing was written. Name a file, or a path for a new one.")
        folder = os.stat(self.path.parent)
        if folder.st_mode & stat.S_IWOTH and found.st_uid not in (os.geteuid(), 0):
            raise StoreRefused(
                f"{self.path} lies in a folder that every user may write to and belongs to another user; "
                "nothing was written. Move it to a folder of your own."
            )
        if not os.access(self.path, access):
            raise self._refusal(os.strerror(errno.EACCES), why)

    def identity(self) -> tuple[int, int] | None:
        """Return the identity of the file; None if there is none."""
        try:
            found = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _check_folder(self) -> None:
        folder = self.path.parent
        try:
            found = os.stat(folder)
        except OSError as error:
            raise StoreRefused(
                f"the folder {folder} cannot be used ({error.strerror}); nothing was written. "
                "Create it, or correct the path after sqlite:///."
            ) from None
        if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            raise StoreRefused(
                f"every user may write to the folder {folder}, so any of them could replace the store; nothing was "
                f"written. Run: chmod o-w {folder}"
            )
        kind = filesystem_of(folder)
        if is_refused(kind):
            raise StoreRefused(
                f"{folder} is on a network file system ({kind}), where SQLite's locks do not bind every machine; "
                "nothing was written. Use a local disk, or a server store such as postgresql://."
            )

    def _refusal(self, error: str | None, why: str) -> StoreRefused:
        if self.path.is_symlink():
            return StoreRefused(
                f"{self.path} is a symbolic link, which another user could redirect; nothing was written. "
                "Give the path of the file itself."
            )
        return StoreRefused(
            f"{self.path} cannot be opened for {why} ({error}); nothing was written. "
            "Check the owner and the mode of the file and of its folder."
        )


def place_of(url: StoreUrl) -> Place:
    """Return the file of a URL: `sqlite:///file` is relative, `sqlite:////file` absolute."""
    if url.hosts or not url.path.startswith("/"):
        raise InvalidError(
            "a SQLite URL names a file after three slashes (sqlite:///solocron.db), four for an absolute path; "
            "nothing was opened."
        )
    name = url.path[1:]
    if not name or name.endswith("/") or "\0" in name:
        raise InvalidError("the SQLite URL names no file; write for example sqlite:///solocron.db. Nothing was opened.")
    # Absolute from now on: a later chdir must not change the store.
    return Place(Path(os.path.abspath(name)))


def is_refused(kind: str) -> bool:
    """Return whether locks cannot be relied on there; `fuse.overlayfs` of rootless containers is a local disk."""
    return kind in REFUSED or (kind.startswith("fuse.") and kind != "fuse.overlayfs")


def filesystem_of(folder: Path, mounts: str | None = None) -> str:
    """The type of the file system that holds a folder, as the kernel names it; "" where it cannot be told."""
    try:
        table = Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
        real = os.path.realpath(folder)
    except OSError:  # pragma: no cover - not Linux
        return ""
    best, kind = "", ""
    for line in table.splitlines():
        left, separator, right = line.partition(" - ")
        if not separator:
            continue
        point = _unescape(left.split(" ")[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of two on one point the later covers the earlier
            best, kind = point, right.split(" ")[0]
    return kind


def _unescape(point: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
