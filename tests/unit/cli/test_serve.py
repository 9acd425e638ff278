"""`solocron serve` and `solocron token`: what is refused before anything listens, and a whole life of the service."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from solocron.testing.fleet import wait_until
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


OIDC = ["--oidc-issuer", "https://i.example", "--oidc-audience", "a", "--oidc-subject", "s"]


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
        (["--allowed-host", "https://x.example", "--token-file", "tokens"], "not a host"),
        (["--host", "0.0.0.0", "--token-file", "tokens", "--behind-proxy", "10.0.0.1", "--open"], "on this machine"),
        (["--tick", "--token-file", "tokens"], "needs TARGET"),
        (["--oidc-issuer", "https://i.example", "--token-file", "tokens"], "belong together"),
        ([*OIDC, "--token-file", "tokens"], "needs --tick"),
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


class Served:
    """A process that serves, and its first lines on stdout."""

    def __init__(self, *argv: str, lines: int = 1) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "solocron", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.said = [self.process.stdout.readline().strip() for _ in range(lines)]
        self.url = self.said[0]

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *given: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes, str | None]:
        """Return status, body and the cookie that is set; redirects are not followed."""
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
        try:
            connection.request(method, f"{where.path}{path}", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers.get("Set-Cookie")
        finally:
            connection.close()

    def stop(self) -> str:
        """End it as a supervisor does, and return its log."""
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, log
        return log


def test_it_serves_until_it_is_told_to_stop_and_ends_with_0(cli: Cli, write: Write, elsewhere: Path) -> None:
    write("shop_served.py", ONE_JOB)
    store = ["--store", "sqlite:///shop.db"]
    token = cli("token", "new", "ana", "--token-file", "tokens").lines[0]
    with Served(*store, "serve", "--port", "0", "--token-file", "tokens") as served:
        assert served.url.startswith("http://127.0.0.1:")
        known = {"Authorization": f"Bearer {token}"}
        assert served.ask("api/v1/jobs", **known)[0] == 404, "there is no store yet"
        assert not (elsewhere / "shop.db").exists()
        tick = [sys.executable, "-m", "solocron", "tick", "shop_served", *store]
        subprocess.run(tick, check=True, capture_output=True)
        status, body, _ = served.ask("api/v1/jobs", **known)
        assert status == 200
        assert [job["name"] for job in json.loads(body)["items"]] == ["invoices"]
        assert served.ask("api/v1/jobs")[0] == 401
        assert served.ask("api/v1/jobs", Host="evil.example", **known)[0] == 421
        log = served.stop()
    assert "there is no such file" in log
    assert "GET /api/v1/jobs 200" in log
    assert token not in log


def test_a_link_that_is_opened_logs_in_once(elsewhere: Path, shop: Shop) -> None:
    with Served(
        "--store", "sqlite:///shop.db", "serve", "--port", "0", "--base-path", "/x", "--open", lines=2
    ) as served:
        link = served.said[1]
        assert link.startswith(f"{served.url}open?code=")
        status, _, cookie = served.ask(link.removeprefix(served.url))
        assert status == 303
        assert cookie is not None
        assert "HttpOnly; SameSite=Strict" in cookie
        login = cookie.partition(";")[0]
        assert json.loads(served.ask("api/v1/me", Cookie=login)[1])["role"] == "operate"
        again = served.ask(link.removeprefix(served.url))
        assert (again[0], again[2]) == (303, None), "it is used up"
        log = served.stop()
    assert link.partition("=")[2] not in log


def test_a_target_can_be_ticked(cli: Cli, write: Write, elsewhere: Path) -> None:
    write("shop_ticked.py", ONE_JOB)
    token = cli("token", "new", "cron", "--role", "tick", "--token-file", "tokens").lines[0]
    argv = ["serve", "shop_ticked", "--store", "sqlite:///shop.db", "--port", "0", "--tick", "--token-file", "tokens"]
    with Served(*argv) as served:
        known = {"Authorization": f"Bearer {token}"}
        status, body, _ = served.ask("api/v1/tick", method="POST", **known)
        assert (status, json.loads(body)["runs"]) == (200, [])
        assert json.loads(body)["next"] is not None
        served.stop()
    assert (elsewhere / "shop.db").exists()


def test_a_node_serves_beside_its_work_until_it_has_drained(cli: Cli, write: Write, elsewhere: Path) -> None:
    write("shop_run.py", ONE_JOB)
    token = cli("token", "new", "ana", "--token-file", "tokens").lines[0]
    argv = ["run", "shop_run", "--store", "sqlite:///shop.db", "--serve", "127.0.0.1:0", "--token-file", "tokens"]
    with Served(*argv) as served:
        known = {"Authorization": f"Bearer {token}"}

        def nodes() -> list[str]:
            status, body, _ = served.ask("api/v1/nodes", **known)
            return [one["state"] for one in json.loads(body)["items"]] if status == 200 else []

        wait_until(lambda: nodes() == ["live"], within=20, what="the node")
        wait_until(lambda: served.ask("health/ready")[0] == 200, within=20, what="the service to be ready")
        log = served.stop()
    assert "a node has drained" in log


def test_open_connections_do_not_keep_it_from_stopping(cli: Cli, elsewhere: Path, shop: Shop) -> None:
    """An idle one, one in the middle of its head, one in the middle of its body, and one that is told of changes."""
    token = cli("token", "new", "ana", "--role", "operate", "--token-file", "tokens").lines[0]
    with Served("--store", "sqlite:///shop.db", "serve", "--port", "0", "--token-file", "tokens") as served:
        where = urlsplit(served.url)
        known = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"
        sent = (
            f"GET /api/v1/me HTTP/1.1\r\n{known}\r\n",
            f"GET /api/v1/events HTTP/1.1\r\n{known}\r\n",
            "GET /api/v1/me HTTP/1.1\r\nHost: loc",
            f"POST /api/v1/bulk HTTP/1.1\r\n{known}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{",
        )
        opened = [socket.create_connection((where.hostname or "", where.port or 0), timeout=20) for _ in sent]
        for one, text in zip(opened, sent, strict=True):
            one.sendall(text.encode())
        for one in opened[:2]:
            assert one.recv(1024).startswith(b"HTTP/1.1 200 ")
        begun = time.monotonic()
        served.stop()
        assert time.monotonic() - begun < 15
        for one in opened:
            one.close()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--serve", "8700"], "not HOST:PORT"),
        (["--serve", "127.0.0.1:x"], "not HOST:PORT"),
        (["--serve", "0.0.0.0:8700"], "needs --token-file"),
        (["--serve"], "without a terminal"),
        (["--token-file", "tokens"], "needs --serve"),
        (["--open"], "needs --serve"),
        (["--edit"], "needs --serve"),
        (["--tls-key", "x"], "needs --serve"),
    ],
)
def test_a_node_that_would_be_open_by_mistake_does_not_start(
    cli: Cli, write: Write, elsewhere: Path, options: list[str], why: str
) -> None:
    write("shop_open.py", ONE_JOB)
    found = cli("run", "shop_open", "--store", "sqlite:///shop.db", *options)
    assert (found.code, why in found.err) == (2, True), found.err
    assert not (elsewhere / "shop.db").exists()
