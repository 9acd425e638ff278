"""A program in which one thread writes to the store without a pause while another forks, again and again.

Prints how many of the children could write as well, each within the time that the store's patience takes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import warnings

from solocron.errors import StoreError
from solocron.stores.url import make_store

warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is just what this is about

CHILDREN = 15
PATIENCE = 10


def main(url: str) -> int:
    store = make_store(url)
    store.open()
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            store.signal()

    writer = threading.Thread(target=write)
    writer.start()
    wrote = 0
    for _ in range(CHILDREN):
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE)  # a child that waits for a lock which nobody holds would do so for ever
            try:
                store.signal()
            except StoreError:
                os._exit(1)
            os._exit(0)
        wrote += os.waitpid(child, 0)[1] == 0
    over.set()
    writer.join()
    store.close()
    sys.stdout.write(json.dumps({"children": CHILDREN, "wrote": wrote}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
