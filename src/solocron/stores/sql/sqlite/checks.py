"""The lines of `doctor` about a SQLite store."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solocron.errors import StoreError
from solocron.stores.contract import Check
from solocron.stores.sql import migrations
from solocron.stores.sql.checks import check_clock, check_schema
from solocron.stores.sql.sqlite.file import DOUBTFUL, filesystem_of, is_refused

if TYPE_CHECKING:
    from solocron.stores.sql.sqlite.store import SQLiteStore

__all__ = ["checks"]

_LOW = 64 * 1024 * 1024
_VERY_LOW = 4 * 1024 * 1024


def checks(store: SQLiteStore) -> Sequence[Check]:
    """Return every line; a file that cannot be read is a FAIL that says why."""
    found = [_file_mode(store), _folder(store), _filesystem(store), _space(store)]
    if store.place.identity() is None:
        return found  # looking must not create it
    try:
        store._open_for_reading()
        found += [_journal(store), _synchronous(store), check_schema(migrations.status(store))]
        found.append(check_clock(store.boot_clock.skew()))
    except StoreError as error:
        found.append(Check("store", "FAIL", str(error), "see the message"))
    return found


def _file_mode(store: SQLiteStore) -> Check:
    path = store.place.path
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError as error:
        return Check("file mode", "FAIL", f"{path}: {error.strerror}", "start a node, or correct --store")
    detail = f"{path} is {mode:04o}"
    if mode & (stat.S_IWOTH | stat.S_IWGRP):
        return Check("file mode", "FAIL", f"{detail}: others may change what runs", f"chmod 600 {path}")
    if mode & (stat.S_IROTH | stat.S_IRGRP):
        return Check("file mode", "WARN", f"{detail}: others may read payloads and errors", f"chmod 600 {path}")
    return Check("file mode", "OK", detail)


def _folder(store: SQLiteStore) -> Check:
    folder = store.place.path.parent
    try:
        mode = os.stat(folder).st_mode
    except OSError as error:
        return Check("folder", "FAIL", f"{folder}: {error.strerror}", "create it, or correct --store")
    detail = f"{folder} is {stat.S_IMODE(mode):04o}"
    if not mode & stat.S_IWOTH:
        return Check("folder", "OK", detail)
    if mode & stat.S_ISVTX:
        return Check("folder", "WARN", f"{detail}: every user may create files in it", "use a folder of your own")
    return Check("folder", "FAIL", f"{detail}: any user could replace the store", f"chmod o-w {folder}")


def _filesystem(store: SQLiteStore) -> Check:
    kind = filesystem_of(store.place.path.parent)
    if is_refused(kind):
        return Check(
            "file system", "FAIL", f"{kind}: locks do not bind every machine", "use a local disk or a server store"
        )
    if kind in DOUBTFUL:
        return Check("file system", "WARN", f"{kind}: shared with a host, locks may not reach it", "use a local disk")
    return Check("file system", "OK", kind or "unknown")


def _space(store: SQLiteStore) -> Check:
    try:
        free = shutil.disk_usage(store.place.path.parent).free
    except OSError as error:
        return Check("free disk", "FAIL", str(error.strerror), "create the folder, or correct --store")
    detail = f"{free // (1024 * 1024)} MB free"
    if free < _VERY_LOW:
        return Check("free disk", "FAIL", f"{detail}: nothing can be written soon, and then nothing runs", "free some")
    if free < _LOW:
        return Check("free disk", "WARN", detail, "free some space, or keep less history")
    return Check("free disk", "OK", detail)


def _journal(store: SQLiteStore) -> Check:
    mode = store.call(lambda link: link.pragma("journal_mode"))
    if mode == "wal":
        return Check("journal mode", "OK", f"wal, SQLite {sqlite3.sqlite_version}")
    return Check(
        "journal mode", "FAIL", f"{mode}: readers and writers stop each other", "restart the nodes; they set wal"
    )


def _synchronous(store: SQLiteStore) -> Check:
    level = store.call(lambda link: link.pragma("synchronous"))
    if level >= 2:
        return Check("synchronous", "OK", "full: a commit survives a power cut")
    return Check(
        "synchronous",
        "WARN",
        "normal: the last commits may be lost with the power (tier B)",
        "drop ?synchronous=normal",
    )
