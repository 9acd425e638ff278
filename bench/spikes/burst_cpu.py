"""Processor time of a node per run, in a burst on the memory store and on SQLite: source trees side by side.

    python -m bench.spikes.burst_cpu before=PATH after=. --rounds 15

Each round is a fresh process for each tree, in turn; the least and the median of them count. A tree named `msgspec`
runs on msgspec, as in `msgspec_codec`. Wall time plays no part, so that a busy machine disturbs little.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STORES = ("memory", "sqlite")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", metavar="NAME=PATH", help="source trees, each with src/ and bench/")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--due", type=int, default=1_000)
    args = parser.parse_args()
    trees = [tree.split("=", 1) for tree in args.trees]
    found: dict[str, dict[str, list[float]]] = {store: {name: [] for name, _ in trees} for store in STORES}
    for _ in range(args.rounds):
        for store in STORES:
            for name, path in trees:
                orders = json.dumps([name, str(Path(path).resolve()), store, args.due])
                told = subprocess.check_output([sys.executable, __file__, "--child", orders])
                found[store][name].append(json.loads(told))
    for store, sides in found.items():
        first = next(iter(sides.values()))
        for name, us in sides.items():
            ratios = f"{min(first) / min(us):.3f} x, median {statistics.median(first) / statistics.median(us):.3f} x"
            print(f"{store:7} {name:10} {min(us):7.1f} us/run, median {statistics.median(us):7.1f}; {ratios}")
    return 0


def _child(name: str, tree: str, store: str, due: int) -> None:
    sys.path[:0] = [f"{tree}/src", tree]
    if name == "msgspec":
        from bench.spikes.msgspec_codec import _become_structs, _read_and_write_with_msgspec

        _become_structs()
        from solocron.model import codec

        _read_and_write_with_msgspec(codec)
    with tempfile.TemporaryDirectory() as folder:
        cpu = _burst("memory://burst" if store == "memory" else f"sqlite:///{folder}/burst.db", due)
    print(json.dumps(cpu / due * 1e6))


def _burst(url: str, due: int) -> float:
    """Seconds of processor time from just before the instant until the last outcome is in the store."""
    from bench.load import daily_at, load_jobs
    from solocron import Scheduler
    from solocron.process import settle_memory

    scheduler: Any = Scheduler(url, node="n", max_running=500)
    scheduler.register(lambda: None, name="noop")
    scheduler.start()
    at = (int(time.time()) + 4) * 1_000_000
    client = scheduler.client if hasattr(scheduler, "client") else scheduler.open()
    load_jobs(client.store, due, lambda _: daily_at(at))
    settle_memory()
    if time.time() * 1e6 > at - 200_000:
        raise RuntimeError("the machine was too slow to load the jobs before they fell due")
    time.sleep(at / 1e6 - 0.1 - time.time())
    cpu = time.process_time()
    until = time.time() + 60
    while scheduler.events.counts["finished"] < due and time.time() < until:
        time.sleep(0.05)
    cpu = time.process_time() - cpu
    finished = scheduler.events.counts["finished"]
    scheduler.stop("10s")
    assert finished == due, scheduler.events.counts
    return cpu


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        _child(*json.loads(sys.argv[2]))
    else:
        sys.exit(main())
