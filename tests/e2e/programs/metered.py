"""A node that serves its metrics, with a worker that gets every message of a carrier twice: STORE NODE PORT-FILE."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server

from solocron import Message, Run, Scheduler


class Twice:
    """Take each message to a worker in this process, as a queue that delivers at least once."""

    follows = True

    def __init__(self, worker: Scheduler, threads: ThreadPoolExecutor) -> None:
        self._worker, self._threads = worker, threads

    def publish(self, message: Message) -> None:
        for _ in range(2):
            self._threads.submit(self._worker.carry_out, message)


def main(store: str, node: str, file: str) -> None:
    registry = CollectorRegistry()
    scheduler, worker = (Scheduler(store, node=name, lease="3s", enabled=True) for name in (node, f"{node}-worker"))
    threads = ThreadPoolExecutor(1)
    for one in (scheduler, worker):
        one.metrics(registry)
        one.carrier("twice", Twice(worker, threads))
        declare(one)
    scheduler.alarms(failing=1, every="1s")
    server, thread = start_http_server(0, "127.0.0.1", registry)
    Path(f"{file}.new").write_text(str(server.server_port))
    Path(f"{file}.new").rename(file)
    scheduler.run_forever()
    threads.shutdown()
    worker.stop("5s")
    server.shutdown()
    server.server_close()
    thread.join()


def declare(scheduler: Scheduler) -> None:
    @scheduler.every("1s", name="secondly")
    def secondly(run: Run) -> None:
        scheduler.trigger("broken", key="once")

    @scheduler.every("1s", name="carried", run_in="twice")
    def carried() -> None: ...

    @scheduler.every("365d", name="broken")
    def broken() -> None:
        """Fail once, which is an alarm here, and not three times, which is an alert."""
        raise ValueError("no paper")


if __name__ == "__main__":
    main(*sys.argv[1:])
