"""A served dashboard on a real SQLite file, and a browser: made once, because they cost more than most tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from solocron.client import Client
from solocron.service.roles import Role
from solocron.service.tokens import add_token
from solocron.stores.url import make_store
from tests.browser.fleet import build
from tests.required import require_module, require_program

HINT = "make servers, or apt-get install chromium"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
LOOKS = ("color-contrast", "target-size", "link-in-text-block", "scrollable-region-focusable")
"""The rules that depend on theme and width; all others look at the document, which is the same in each."""


@dataclass
class Site:
    """The service in a process of its own."""

    store: str
    token_file: Path
    tokens: dict[Role, str]
    namespace: str = "default"
    also: tuple[str, ...] = ()
    port: int = 0
    process: subprocess.Popen[str] | None = None
    address: str = ""
    logins: dict[Role, Any] = field(default_factory=dict)
    """Cookies by role: a login is made once, because only five a minute are let in."""

    def start(self) -> None:
        """Start it; a second start takes the same port again."""
        command = [sys.executable, "-m", "solocron", "serve", "--store", self.store, "--port", str(self.port)]
        command += ["--namespace", self.namespace, *(f"--also={name}" for name in self.also)]
        self.process = subprocess.Popen(
            [*command, "--token-file", str(self.token_file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().rstrip("/")
        self.port = int(self.address.rpartition(":")[2])

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Yield a client beside the service, as another person or program has one."""
        store = make_store(self.store)
        try:
            yield Client(store)
        finally:
            store.close()

    def acts(self) -> list[tuple[str, str]]:
        """Return every act on record, the newest first."""
        with self.client() as client:
            return [(one.act, one.subject) for one in client.audit(limit=200).entries]


@dataclass
class Chromium:
    """The browser."""

    browser: Any
    axe: str

    @contextmanager
    def tab(
        self, site: Site, *, role: Role | None = Role.OPERATE, width: int = 1440, theme: str = "light", **more: Any
    ) -> Iterator[Any]:
        """Yield a page of a new browser context, logged in; whatever the browser reports fails the test."""
        if role is not None and role not in site.logins:
            site.logins[role] = self._log_in(site, role)
        context = self.browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            base_url=site.address,
            storage_state=site.logins.get(role) if role is not None else None,
            **more,
        )
        context.set_default_timeout(15_000)
        page = context.new_page()
        reports: list[str] = []
        page.on("console", lambda said: reports.append(f"{page.url}: {said.type}: {said.text}"))
        page.on("pageerror", lambda error: reports.append(f"{page.url}: {error}"))
        page.reports = reports
        try:
            yield page
        finally:
            context.close()

    def _log_in(self, site: Site, role: Role) -> Any:
        context = self.browser.new_context(base_url=site.address)
        page = context.new_page()
        page.goto("/login")
        page.fill("input[name=token]", site.tokens[role])
        page.click("button[type=submit]")
        page.wait_for_selector("nav.side")
        state = context.storage_state()
        context.close()
        return state

    def findings(self, page: Any, rules: Sequence[str] = RULES, *, within: str = "html") -> list[str]:
        """Return what axe finds on a page or in a part of it, by sets of rules or by single ones."""
        if page.evaluate("typeof axe === 'undefined'"):
            page.evaluate(self.axe)
        run = "([part, rules]) => axe.run(part, {runOnly: rules, resultTypes: ['violations']})"
        told = page.evaluate(run, [within, list(rules)])
        return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}" for one in told["violations"]]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    require_program("chromium", HINT)
    folder = tmp_path_factory.mktemp("site")
    tokens = {role: add_token(folder / "tokens", f"{role}-er", role) for role in (Role.READ, Role.OPERATE)}
    served = Site(build(folder / "fleet.db"), folder / "tokens", tokens, also=("mail",))
    served.start()
    yield served
    assert served.stop() == 0


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    """A browser. Its driver keeps an event loop running, which no test of another file may meet."""
    path = require_program("chromium", HINT)
    require_module("playwright")
    module = require_module("axe_playwright_python")
    from playwright.sync_api import sync_playwright

    axe = (Path(module.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    with sync_playwright() as play:
        # Tests run as root in a container, where the sandbox of the browser cannot be had.
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield Chromium(browser, axe)
        browser.close()
