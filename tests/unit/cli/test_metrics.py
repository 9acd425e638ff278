"""`solocron metrics`: the text that Prometheus reads, from the store alone."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from solocron import Scheduler
from solocron.telemetry.metrics_server import MetricsServer
from tests.unit.cli.kit import Cli, Shop


def test_once_prints_the_metrics_of_the_namespace(cli: Cli, shop: Shop) -> None:
    answer = cli("metrics", "--once", "--store", shop.url)
    assert answer.code == 0
    assert 'solocron_store_up{namespace="default"} 1' in answer.lines
    assert any(line.startswith("solocron_job_runs_total{") for line in answer.lines)


def test_a_server_answers_until_it_is_told_to_stop(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    scheduler = Scheduler(url, enabled=True)
    scheduler.every("365d", name="job")(lambda: None)
    scheduler.tick()
    command = [sys.executable, "-m", "solocron", "metrics", "--port", "0", "--store", url]
    with ExitStack() as stack:
        server = stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        stack.callback(server.kill)
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line
        with urllib.request.urlopen(found[0], timeout=20) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert b"solocron_jobs{" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(found[0].replace("/metrics", "/other"), timeout=20)
        refused.value.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0


def test_forty_clients_at_once_are_all_answered() -> None:
    """The standard backlog of five left the others to their repeated connections, a second later and more."""
    server = MetricsServer("127.0.0.1", 0, tuple)
    port = urlsplit(server.url).port
    with ExitStack() as stack:
        clients = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(40)]  # none is accepted yet
        for client in clients:
            stack.enter_context(client).sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        stack.enter_context(server)
        for client in clients:
            answer = stack.enter_context(client.makefile("rb"))
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--port", "99999"), "--port 99999 is not a port: 0 to 65535. Nothing listens."),
        (("--most", "0"), "--most 0: give a whole number from 1 up. Nothing listens."),
        (("--host", "203.0.113.1"), "203.0.113.1:9464 cannot be listened on"),
    ],
)
def test_a_mistake_is_one_line(cli: Cli, shop: Shop, args: tuple[str, ...], why: str) -> None:
    answer = cli("metrics", *args, "--store", shop.url)
    assert answer.code == 2
    assert why in answer.err
