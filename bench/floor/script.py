"""One process of the floor: waits for the instant, then claims and finishes until nothing is due."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

from solocron.model.change import Kind
from solocron.model.documents.session import Session, begin
from solocron.stores.contract import Named
from solocron.stores.url import make_store


def main() -> int:
    orders = json.loads(sys.argv[1])
    store: Any = make_store(orders["store"])
    store.open()
    name = f"{orders['number']:032x}"
    session = Session(
        name=name, node="n1", host="h", pid=1, pools=("default",), handlers=None, version="", fingerprint="",
        revision=None, zone_data="", lease=3600 * 1_000_000,
    )  # fmt: skip
    store.update(Named(Kind.SESSION, (name,)), lambda doc, now: begin(doc, session, now=now))
    shared = {"processes": orders["processes"]} if orders["kind"] == "swap" else {}
    floor = import_module(f"bench.floor.{orders['kind']}").Floor(store, name, **shared)
    print(json.dumps({"ready": True}), flush=True)
    instant = float(sys.stdin.readline())
    while time.time() < instant + 0.002:
        time.sleep(max(0.0, (instant - time.time()) / 2))
    cpu = time.process_time()
    done, empty, last = 0, 0, 0.0
    while empty < 3:  # what others are just at is due once more if they fail
        count = floor.pass_once(orders["batch"])
        if count:
            done, empty, last = done + count, 0, time.time()
        else:
            empty += 1
            time.sleep(0.01)
    print(json.dumps({"done": done, "last": last, "cpu_s": time.process_time() - cpu, "over": True}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
