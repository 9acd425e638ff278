"""Open pages in a process of their own: a service and clients that hear its events and fetch their page when told to.

As the script of the dashboard does it: the main part alone, with the tag of the last one, at most once a second.

Its orders come as JSON in the first argument; a line on its standard input ends it.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

_LEFT = (OSError, http.client.HTTPException, ValueError)
"""What a client meets when the service has stopped."""


_PAGES = ("/", "/?lanes=job", "/jobs", "/runs", "/nodes")
"""What is open, by turns."""


def main() -> int:
    orders = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        run, file = [sys.executable, "-m", "solocron"], str(Path(folder) / "tokens")
        tokens = [
            subprocess.run([*run, "token", "new", f"viewer-{n}", "--token-file", file], check=True, capture_output=True)
            for n in range((orders["pages"] + 5) // 6)  # a caller has six streams
        ]
        argv = [*run, "--store", orders["store"], "serve", "--port", "0", "--token-file", file]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as served:
            assert served.stdout is not None
            port = int(served.stdout.readline().rstrip("/\n").rpartition(":")[2])
            fetched = [0]
            begun = threading.Semaphore(0)
            for number in range(orders["pages"]):
                token = tokens[number // 6].stdout.decode().strip()
                threading.Thread(
                    target=_look, args=(port, token, _PAGES[number % len(_PAGES)], begun, fetched), daemon=True
                ).start()
            for _ in range(orders["pages"]):
                if not begun.acquire(timeout=60):
                    raise RuntimeError("a page did not open")
            print(json.dumps({"ready": True}), flush=True)
            sys.stdin.readline()
            served.send_signal(signal.SIGTERM)
            code = served.wait(30)
    print(json.dumps({"over": True, "fetched": fetched[0], "code": code}), flush=True)
    os._exit(code)


def _look(port: int, token: str, path: str, begun: threading.Semaphore, fetched: list[int]) -> None:
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip"}
    part = {"Solocron-Part": "main", "Accept": "text/html"}
    try:
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        stream.request("GET", "/api/v1/events", headers=headers)
        tag, asked = "", 0.0
        for line in stream.getresponse():
            if line == b"event: hello\n":
                begun.release()
            if line == b"event: changed\n" and time.monotonic() - asked >= 1:
                asked = time.monotonic()
                page = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                page.request("GET", path, headers=headers | part | {"If-None-Match": tag})
                answer = page.getresponse()
                answer.read()
                tag = answer.getheader("ETag") or ""
                page.close()
                fetched[0] += 1
    except _LEFT:
        return


if __name__ == "__main__":
    sys.exit(main())
