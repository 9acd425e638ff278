"""A node that serves its metrics: STORE NODE PORT-FILE."""

from __future__ import annotations

import sys
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server

from solocron import Scheduler


def main(store: str, node: str, file: str) -> None:
    registry = CollectorRegistry()
    scheduler = Scheduler(store, node=node, lease="3s", enabled=True)
    scheduler.metrics(registry)

    @scheduler.every("1s")
    def secondly() -> None: ...

    server, thread = start_http_server(0, "127.0.0.1", registry)
    Path(f"{file}.new").write_text(str(server.server_port))
    Path(f"{file}.new").rename(file)
    scheduler.run_forever()
    server.shutdown()
    server.server_close()
    thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
