"""`solocron serve` and `solocron token`: what is refused before anything listens, and a whole life of the service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.unit.cli.kit import ONE_JOB, Cli, Shop, Write


def test_a_token_is_shown_once_on_stdout_alone(cli: Cli, elsewhere: Path) -> None:
    made = cli("token", "new", "ana", "--role", "operate", "--token-file", "tokens")
    assert made.code == 0
    (token,) = made.lines
    assert token not in made.err
    assert token not in (elsewhere / "tokens").read_text()
    again = cli("token", "new", "ana", "--token-file", "tokens")
    assert (again.code, again.out) == (4, "")
    assert "No token was made" in again.err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0"], "needs --token-file"),
        (["--host", "0.0.0.0", "--token-file", "tokens"], "sent in clear"),
        (["--host", "192.0.2.1", "--token-file", "tokens"], "sent in clear"),
        (["--host", "example.com", "--token-file", "tokens"], "sent in clear"),
        (["--host", "0.0.0.0", "--token-file", "tokens", "--behind-proxy", "10.0.0.1"], "needs --allowed-host"),
        (["--behind-proxy", "everyone", "--token-file", "tokens"], "not the address of a proxy"),
        (["--tls-cert", "a.pem", "--token-file", "tokens"], "belong together"),
        (["--tls-cert", "a.pem", "--tls-key", "b.pem", "--token-file", "tokens"], "cannot be used"),
        (["--base-path", "solocron", "--token-file", "tokens"], "not a path"),
        (["--base-path", "/a//b", "--token-file", "tokens"], "not a path"),
        (["--port", "70000", "--token-file", "tokens"], "not a port"),
        (["--token-file", "missing"], "cannot be used"),
        ([], "without a terminal"),
    ],
)
def test_what_would_be_open_by_mistake_is_refused_before_anything_listens(
    cli: Cli, shop: Shop, options: list[str], why: str
) -> None:
    cli("token", "new", "ana", "--token-file", "tokens")
    found = cli("--store", shop.url, "serve", *options)
    assert found.code == 2
    assert why in found.err
    assert "Nothing listens" in found.err or "Nothing was started" in found.err
    assert not found.out


def test_a_file_of_tokens_without_one_is_refused(cli: Cli, shop: Shop, elsewhere: Path) -> None:
    (elsewhere / "tokens").touch(mode=0o600)
    found = cli("--store", shop.url, "serve", "--token-file", "tokens")
    assert (found.code, "has no token" in found.err) == (2, True)


def test_without_the_extra_it_says_which_to_install(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    cli("token", "new", "ana", "--token-file", "tokens")
    found = cli("--store", shop.url, "serve", "--port", "0", "--token-file", "tokens")
    assert found.code == 2
    assert 'pip install "solocron[web]"' in found.err
    assert not found.out


def test_a_program_that_serves_nothing_imports_nothing_of_it() -> None:
    look = (
        "import solocron, solocron.cli.parser as p, sys; p.build([]); print([m for m in sys.modules if 'service' in m])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_serves_until_it_is_told_to_stop_and_ends_with_0(cli: Cli, write: Write, elsewhere: Path) -> None:
    write("shop_served.py", ONE_JOB)
    store = ["--store", "sqlite:///shop.db"]
    subprocess.run([sys.executable, "-m", "solocron", "tick", "shop_served", *store], check=True, capture_output=True)
    token = cli("token", "new", "ana", "--token-file", "tokens").lines[0]
    argv = [sys.executable, "-m", "solocron", *store, "serve", "--port", "0", "--token-file", "tokens"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ) as served:
        assert served.stdout is not None
        url = served.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")

        def ask(path: str, **headers: str) -> tuple[int, bytes]:
            request = urllib.request.Request(f"{url}{path}", headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read()

        status, body = ask("api/v1/jobs", Authorization=f"Bearer {token}")
        assert status == 200
        assert [job["name"] for job in json.loads(body)["items"]] == ["invoices"]
        assert ask("api/v1/jobs")[0] == 401
        assert ask("api/v1/jobs", Authorization=f"Bearer {token}", Host="evil.example")[0] == 421
        assert ask("health/ready") == (200, b"ok\n")
        wanted = urllib.request.Request(f"{url}api/v1/events", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(wanted, timeout=30) as stream, urllib.request.urlopen(wanted, timeout=30) as other:
            assert stream.readline() == other.readline() == b"event: hello\n"
            served.send_signal(signal.SIGTERM)
            assert b"event: bye\n" in stream.read()
        _, log = served.communicate(timeout=30)
    assert served.returncode == 0
    assert "GET /api/v1/jobs 200" in log
    assert token not in log
