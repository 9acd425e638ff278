"""A job that writes into books of its own, guarded or not; its first attempt waits there until the test lets it go."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from solocron import Run, RunStopped, every
from solocron.effects.guard import guard
from solocron.testing.fleet import witness

_nothing = threading.Event()


def folder() -> Path:
    return Path(os.environ["EFFECTS_FOLDER"])


@every("1d", name="pay", retries=3, on_lost="finish")
def pay(run: Run) -> None:
    """`payload` says how careful it is: not at all, `guard`, or `target`, where the database alone compares fences."""
    with witness(run):
        while run.attempt == 1 and not (folder() / "go").exists():
            _nothing.wait(0.01)
        try:
            with closing(sqlite3.connect(folder() / "books.db", timeout=30)) as books, books:
                books.execute("CREATE TABLE IF NOT EXISTS paid (run TEXT, attempt INTEGER)")
                if run.payload == "guard":
                    run.guard(books)
                elif run.payload == "target":
                    guard(books, scope="default/pay", fence=run.fence)
                books.execute("INSERT INTO paid VALUES (?, ?)", (run.id, run.attempt))
        except (Exception, RunStopped) as error:
            (folder() / f"refused.{run.attempt}").write_text(type(error).__name__)
            raise
