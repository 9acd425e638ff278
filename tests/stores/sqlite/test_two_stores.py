"""Two stores of one process on one file: what the second does must not take the locks of the first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Named
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import job, put

ELSEWHERE = """
import sys
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import job, put

store = make_store(sys.argv[1])
put(store, job(sys.argv[2]))
store.close()
"""


@pytest.mark.parametrize("read_only", [True, False])
def test_another_process_that_writes_and_leaves_keeps_the_log_that_we_use(tmp_path: Path, read_only: bool) -> None:
    """POSIX drops a process's locks on a file when it closes any descriptor of it.

    Without them the last other process takes the file for its own, and removes the write-ahead log under us: what we
    then write is in a file that no one else can see.
    """
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    first, second = make_store(url), make_store(url)
    put(first, job("a"))
    second.open(read_only=read_only)
    second.read(Named(Kind.JOB, ("a",)))
    for name in ("b", "c"):
        subprocess.run([sys.executable, "-c", ELSEWHERE, url, name], check=True, timeout=60)
        assert len(first.read(Named(Kind.JOB, (name,)))) == 1
        put(first, job(f"after-{name}"))
    fresh = make_store(url)
    try:
        assert {doc.name for doc in fresh.read(Named(Kind.JOB, ("a", "b", "after-b", "c", "after-c")))} == {
            *("a", "b", "after-b", "c", "after-c"),
        }
    finally:
        for store in (first, second, fresh):
            store.close()
