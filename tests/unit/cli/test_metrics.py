"""`solocron metrics`: the text that Prometheus reads, from the store alone."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

from solocron import Scheduler
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
