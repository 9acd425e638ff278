"""Open pages in a process of their own: a service and clients that hear its events and fetch their page when told to.

As the script of the dashboard does it: the topics of the page alone, its main part with the tag of the last one, at
most once a second, and every half minute without a tag. No browser draws: that happens on the readers' machines.

Its orders come as JSON in the first argument; the line "count" on its standard input asks for the processor time of the
service, any other ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

_TOPICS = re.compile(rb'<meta name="solocron-topics" content="([^"]*)">')
_PAGES = ("/", "/?lanes=job", "/jobs", "/runs", "/nodes")
"""What is open, by turns."""
_OF_ONE_CALLER = 6
"""Streams that a caller may have."""
_WHOLE_EVERY = 30.0


class _Readers:
    """Pages that are open, each with its stream."""

    def __init__(self, port: int, pages: int, tokens: list[str]) -> None:
        self._port = port
        self._pages = [(_PAGES[number % len(_PAGES)], tokens[number // _OF_ONE_CALLER]) for number in range(pages)]
        self.told = self.fetched = self.changed = 0
        self.over = asyncio.Event()
        self._open = 0
        self._all_open = asyncio.Event()

    async def read(self) -> None:
        """Open the pages, say so, and follow them until it is over."""
        async with asyncio.TaskGroup() as group:  # a page that cannot be followed ends the measurement
            tabs = [group.create_task(self._tab(path, token)) for path, token in self._pages]
            async with asyncio.timeout(60):
                await self._all_open.wait()
            _say(ready=True)
            await self.over.wait()
            for tab in tabs:
                tab.cancel()

    async def _tab(self, path: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity", "Accept": "text/html"}
        _, page = await self._get(path, headers)
        found = _TOPICS.search(page)
        assert found is not None, page[:500]
        headers |= {"Accept-Encoding": "gzip", "Solocron-Part": "main"}
        tag, asked, whole = "", 0.0, 0.0
        reader, writer = await self._asked(f"/api/v1/events?topics={quote(found[1])}", headers)
        while line := await reader.readline():
            if line == b"event: hello\n":
                self._open += 1
                if self._open == len(self._pages):
                    self._all_open.set()
            elif line == b"event: changed\n":
                self.told += 1
                await asyncio.sleep(max(0.0, asked + 1 - time.monotonic()))
                asked = time.monotonic()
                known = tag and asked - whole < _WHOLE_EVERY
                whole = whole if known else asked
                tag, body = await self._get(path, headers | ({"If-None-Match": tag} if known else {}))
                self.fetched += 1
                self.changed += bool(body)
        writer.close()
        raise RuntimeError(f"{path}: its stream ended")

    async def _get(self, path: str, headers: dict[str, str]) -> tuple[str, bytes]:
        reader, writer = await self._asked(path, headers | {"Connection": "close"})
        head = await reader.readuntil(b"\r\n\r\n")
        if head.split(b" ", 2)[1] not in (b"200", b"304"):
            raise RuntimeError(f"{path}: {head[:200]!r}")
        body = await reader.read(-1)
        writer.close()
        tag = next((line[6:] for line in head.decode().split("\r\n") if line[:6].lower() == "etag: "), "")
        return tag, body

    async def _asked(self, path: str, headers: dict[str, str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join((*lines, "", "")).encode())
        return reader, writer


def main() -> int:
    orders = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        run, file = [sys.executable, "-m", "solocron"], str(Path(folder) / "tokens")
        tokens = [
            subprocess.run([*run, "token", "new", f"viewer-{n}", "--token-file", file], check=True, capture_output=True)
            for n in range((orders["pages"] + _OF_ONE_CALLER - 1) // _OF_ONE_CALLER)
        ]
        argv = [*run, "--store", orders["store"], "serve", "--port", "0", "--token-file", file]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as served:
            try:
                assert served.stdout is not None
                port = int(served.stdout.readline().rstrip("/\n").rpartition(":")[2])
                asyncio.run(_follow(port, orders["pages"], [one.stdout.decode().strip() for one in tokens], served.pid))
                served.send_signal(signal.SIGTERM)
                code = served.wait(30)
            finally:
                served.kill()
    _say(over=True, code=code)
    return code


async def _follow(port: int, pages: int, tokens: list[str], pid: int) -> None:
    readers, loop = _Readers(port, pages, tokens), asyncio.get_running_loop()

    def hear() -> None:
        for line in sys.stdin:
            if line.strip() != "count":
                break
            seen = {"told": readers.told, "fetched": readers.fetched, "changed": readers.changed}
            _say(counted=seen | {"cpu": time.process_time()}, cpu=_cpu_s(pid), at=time.perf_counter())
        loop.call_soon_threadsafe(readers.over.set)

    threading.Thread(target=hear, daemon=True).start()
    await readers.read()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    sys.exit(main())
