"""A program that forks while another of its threads is in the middle of a write to the SQLite store.

Prints whether the child could write as well, once the parent's write was over.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import warnings
from typing import Any

from solocron.errors import StoreError
from solocron.stores.url import make_store

warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is just what this is about

PATIENCE = 10


def main(url: str) -> int:
    store: Any = make_store(url)
    store.open()
    writing, written = threading.Event(), threading.Event()

    def write() -> None:
        with store.pool.link() as link:
            link.begin()
            writing.set()
            threading.Event().wait(0.3)  # by itself: a store that holds forks back until then must not wait forever
            link.commit()
        written.set()

    writer = threading.Thread(target=write)
    writer.start()
    writing.wait()
    go_on, tell = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)  # a child that waits for a lock without a holder would do so forever
        os.read(go_on, 1)
        try:
            store.signal()
        except StoreError:
            os._exit(1)
        os._exit(0)
    written.wait()
    os.write(tell, b"!")
    wrote = os.waitpid(child, 0)[1] == 0
    writer.join()
    store.close()
    sys.stdout.write(json.dumps({"child_wrote": wrote}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
