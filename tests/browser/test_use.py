"""A person at work: acts, keys, live pages, and what a page of another origin can do, which is nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from solocron.client import Client
from solocron.errors import SolocronError
from solocron.model.documents.audit import Act
from solocron.service.roles import Role
from solocron.stores.url import make_store
from tests.browser.conftest import Chromium, Site

pytestmark = pytest.mark.may_leak("the browser and the service live as long as the tests in this folder")


def heading(page: Any) -> str:
    return str(page.locator("h1").inner_text())


def test_a_job_is_paused_and_resumed_in_dialogs_and_both_are_on_record(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/jobs/usage.rollup")
        page.click("text=Pause")
        dialog = page.locator("dialog#dialog")
        dialog.wait_for()
        assert "Nothing more of it starts by schedule." in dialog.inner_text()
        dialog.locator("input[name=note]").fill("schema move")
        dialog.locator("button[type=submit]").click()
        page.wait_for_selector("text=Paused by operate-er")
        assert "schema move" in page.locator(".band").inner_text()
        page.wait_for_url("**/jobs/usage.rollup")
        page.keyboard.press("p")
        page.locator("dialog#dialog button[type=submit]").click()
        page.wait_for_selector("text=Resumed.")
        assert page.reports == []
    assert site.acts()[:2] == [("resume", "usage.rollup"), ("pause", "usage.rollup")]


def test_every_act_works_without_script(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site, java_script_enabled=False) as page:
        page.goto("/jobs/reports.yearly")
        page.click("text=Run now")
        page.fill("textarea[name=payload]", '{"year": 2026}')
        page.click("button.primary")
        assert heading(page).startswith("reports.yearly")
        run = page.url
        page.click("text=Cancel")
        page.click("button.primary")
        assert page.locator(".bar-line.done").inner_text() == "Cancelled."
        assert page.url.startswith(run.partition("?")[0])
        page.goto("/jobs")
        page.check("input[value='webhooks.flush']")
        page.check("input[value='etl.load']")
        page.click("text=Pause the selected")
        assert heading(page) == "Pause 2 jobs"
        page.click("button.primary")
        assert page.locator(".bar-line.done").inner_text() == "Paused."
        page.goto("/bulk?action=resume&job=webhooks.flush&job=etl.load")
        page.click("button.primary")
        page.goto("/jobs/usage.rollup/backfill")
        page.fill("input[name=start]", "2026-01-01T00:00")
        page.fill("input[name=end]", "2026-01-01T03:00")
        page.click("button.primary")
        assert "3 slots from" in page.locator("#act").inner_text()
        page.click("button.primary")
        assert page.locator(".bar-line.done").inner_text() == "The backfill begins."
    assert [act for act, _ in site.acts()[:7]] == [
        "backfill",
        "resume",
        "resume",
        "pause",
        "pause",
        "cancel",
        "trigger",
    ]


def test_keys_lead_everywhere_and_act_only_through_a_dialog(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/")
        page.keyboard.press("/")
        page.keyboard.type("usage.rollup")
        page.keyboard.press("Enter")
        page.wait_for_url("**/jobs/usage.rollup")
        before = site.acts()
        page.keyboard.press("t")
        page.locator("dialog#dialog").wait_for()
        page.keyboard.press("Escape")
        cell = page.locator("table.cal a.cell.sel")
        cell.focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        page.wait_for_url("**slot=**")
        page.keyboard.press("g")
        page.keyboard.press("j")
        page.wait_for_url("**/jobs")
        page.keyboard.press("j")
        page.keyboard.press("x")
        assert page.locator("#picked").inner_text() == "1 selected"
        page.keyboard.press("?")
        page.locator("dialog#keys").wait_for()
        page.uncheck("#keys-on")
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.keyboard.press("n")
        assert page.url.endswith("/jobs")
        assert site.acts() == before
        assert page.reports == []


def test_keys_on_a_row_of_jobs_act_on_its_job_through_a_dialog(chromium: Chromium, site: Site) -> None:
    with site.client() as client:
        client.pause("etl.load", by="ana")
    with chromium.tab(site) as page:
        before = site.acts()
        page.goto("/jobs?sort=name")
        page.locator("#live", has_text="live").wait_for()
        page.keyboard.press("t")
        assert page.locator("dialog#dialog").is_hidden(), "no row has the focus"
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.textContent") == "etl.load"
        dialog = page.locator("dialog#dialog h1")
        page.keyboard.press("p")
        dialog.wait_for()
        assert dialog.inner_text() == "Resume etl.load", "it is paused"
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        page.keyboard.press("k")
        assert page.evaluate("document.activeElement.textContent") == "dunning.send", "the focus came back to the row"
        page.keyboard.press("p")
        dialog.wait_for()
        assert dialog.inner_text() == "Pause dunning.send"
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        page.keyboard.press("t")
        dialog.wait_for()
        assert dialog.inner_text() == "Run dunning.send now"
        assert site.acts() == before
        assert page.reports == []


def test_a_stale_page_offers_to_try_again_and_is_live_at_once(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/nodes")
        page.locator("#live", has_text="live").wait_for()
        retry = page.locator("#retry")
        assert retry.is_hidden()
        page.route("**/nodes", lambda route: route.fulfill(status=500, body=""))
        for _ in range(3):
            with page.expect_response(lambda answer: answer.status == 500):
                page.keyboard.press("r")
        retry.wait_for()
        assert re.fullmatch(r"stale since \d\d:\d\d:\d\d", page.locator("#live span").inner_text())
        with page.expect_response(lambda answer: answer.status == 500):
            retry.click()
        page.locator("#live", has_text="stale since").wait_for()
        page.unroute("**/nodes")
        retry.click()
        page.locator("#live", has_text="live").wait_for()
        assert retry.is_hidden()


def test_a_copy_is_what_the_page_shows_and_without_a_clipboard_there_is_no_button(
    chromium: Chromium, site: Site
) -> None:
    with chromium.tab(site, permissions=["clipboard-read", "clipboard-write"]) as page:

        def copied(button: str) -> str:
            page.locator(button).first.click()
            page.locator("button.copy", has_text="Copied").first.wait_for()
            return str(page.evaluate("navigator.clipboard.readText()"))

        page.goto("/runs?status=failed")
        page.locator("table.data td a").first.click()
        run = page.locator(".jobhead .mono").inner_text()
        assert copied(".jobhead p .copy") == run
        assert copied("details.error .copy").startswith("Traceback")
        page.goto("/jobs/usage.rollup")
        page.click("#more > summary")
        assert copied("#more .copy") == "solocron show usage.rollup"
        page.keyboard.press("Escape")
        assert page.locator("#more a").first.is_hidden()
        assert page.evaluate("document.activeElement.matches('#more > summary')")
        assert page.reports == []
    with chromium.tab(site) as page:
        page.add_init_script("delete Navigator.prototype.clipboard")
        page.goto("/jobs/usage.rollup")
        page.click("#more > summary")
        assert page.locator("#more a", has_text="JSON").is_visible()
        assert page.locator("#more .copy").is_hidden()


def test_without_script_no_button_is_shown_that_needs_it(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site, java_script_enabled=False) as page:
        for address in ("/", "/jobs/usage.rollup", "/runs?status=failed"):
            page.goto(address)
            for button in page.locator("button[type=button]").all():
                assert button.is_hidden(), button.evaluate("one => one.outerHTML")


def test_a_zone_is_chosen_for_every_page(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site, timezone_id="Asia/Tokyo") as page:
        page.goto("/jobs/usage.rollup")
        page.click("#zones summary")
        page.click("text=Asia/Tokyo, mine")
        page.wait_for_url("**tz=Asia%2FTokyo**")
        assert "newest first, in Tokyo" in page.locator("main").inner_text()
        page.click("nav >> text=Runs")
        assert "tz=Asia%2FTokyo" in page.url


def test_an_open_page_changes_in_place_and_keeps_what_the_reader_does(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/jobs")
        page.locator("#live", has_text="live").wait_for()
        page.fill("input[name=q] >> nth=1", "half a wo")
        page.evaluate("document.querySelector('h1').isTheSame = true")
        with site.client() as client, client.audited(Act(act="pause", subject="webhooks.flush", via="cli", who="ben")):
            client.pause("webhooks.flush", by="ben", note="live test")
        page.wait_for_selector("text=live test")
        assert page.input_value("input[name=q] >> nth=1") == "half a wo"
        assert page.evaluate("document.activeElement.name") == "q"
        assert page.evaluate("document.querySelector('h1').isTheSame")
        with site.client() as client, client.audited(Act(act="resume", subject="webhooks.flush", via="cli", who="ben")):
            client.resume("webhooks.flush", by="ben")
        page.locator("text=live test").wait_for(state="detached")
        assert page.reports == []


def test_open_details_survive_a_change(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/runs?status=failed")
        page.locator("table.data td a").first.click()
        page.locator("#live", has_text="live").wait_for()
        page.locator("details.error summary").click()
        assert page.locator("details.error").get_attribute("open") is None
        with page.expect_response(lambda answer: "solocron-part" in answer.request.headers):
            page.keyboard.press("r")
        assert page.locator("details.error").get_attribute("open") is None


def test_a_store_that_is_away_is_said_over_the_last_page_that_was_good(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/jobs")
        page.locator("#live", has_text="live").wait_for()
        assert page.locator("#away").is_hidden()
        page.route("**/jobs", lambda route: route.fulfill(status=503, body="{}"))
        page.keyboard.press("r")
        page.locator("#away").wait_for()
        assert re.match(r"The store does not answer since \d\d:\d\d:\d\d\.", page.locator("#away").inner_text())
        assert page.locator("table.data a", has_text="usage.rollup").count() == 1
        page.unroute("**/jobs")
        page.keyboard.press("r")
        page.locator("#away").wait_for(state="hidden")


def test_a_page_that_stands_still_says_how_old_it_is(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.clock.install()
        page.goto("/jobs")
        page.locator("#live", has_text="live").wait_for()
        page.keyboard.press("l")
        page.locator("#live", has_text="paused").wait_for()
        assert page.locator("#old").is_hidden()
        page.clock.fast_forward(60_000)
        page.locator("#old").wait_for()
        assert re.fullmatch(r"This page shows what was so 1 m( \d\d s)? ago\.", page.locator("#old").inner_text())
        page.keyboard.press("l")
        page.locator("#old").wait_for(state="hidden")


def test_two_tabs_agree_and_back_and_forward_keep_what_was_chosen(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        other = page.context.new_page()
        other.goto("/jobs/webhooks.flush")
        other.locator("#live", has_text="live").wait_for()
        page.goto("/jobs?state=failing&tz=Asia/Tokyo")
        page.goto("/jobs/webhooks.flush/pause")
        page.fill("#act input[name=note]", "two tabs")
        page.click("#act button.primary")
        page.wait_for_selector("text=Paused.")
        other.locator(".band", has_text="two tabs").wait_for()
        page.goto("/jobs/webhooks.flush/resume")
        page.click("#act button.primary")
        other.locator(".band").wait_for(state="detached")
        page.go_back()
        page.go_back()
        page.go_back()
        page.go_back()
        page.wait_for_url("**/jobs?state=failing&tz=Asia/Tokyo")
        assert "dunning.send" in page.locator("main").inner_text()
        assert "usage.rollup" not in page.locator("main").inner_text()
        assert page.input_value("select[name=state]") == "failing"
        page.go_forward()
        page.wait_for_url("**/jobs/webhooks.flush/pause")
        assert site.acts()[:2] == [("resume", "webhooks.flush"), ("pause", "webhooks.flush")], "nothing was sent again"
        assert page.reports == []


@pytest.mark.long
def test_what_a_reader_does_survives_twenty_updates(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page, site.client() as client:
        page.goto("/jobs")
        page.fill("input[name=q] >> nth=1", "half a wo")
        page.click("#who summary")
        page.focus("input[name=q] >> nth=1")
        for number in range(10):
            with client.audited(Act(act="pause", subject="webhooks.flush", via="cli", who="ben")):
                client.pause("webhooks.flush", by="ben", note=f"update {number}")
            page.locator("main", has_text=f"update {number}").wait_for()
            with client.audited(Act(act="resume", subject="webhooks.flush", via="cli", who="ben")):
                client.resume("webhooks.flush", by="ben")
            page.locator("main", has_text=f"update {number}").wait_for(state="detached")
        assert page.input_value("input[name=q] >> nth=1") == "half a wo"
        assert page.evaluate("document.activeElement.name") == "q"
        assert page.locator("#who").get_attribute("open") is not None
        assert page.reports == []


JOBS = """
import time
from solocron import Scheduler
scheduler = Scheduler({store!r}, namespace="kills", lease="3s")

@scheduler.every("1000d", name="long", retries=3)
def long():
    time.sleep({seconds})
"""


@pytest.mark.long
def test_a_killed_node_and_its_takeover_appear_on_the_open_page(chromium: Chromium, site: Site, tmp_path: Path) -> None:
    """Within the lease, a beat of the sweeper and a pass of the watcher; no one reloads the page."""
    store = f"sqlite:///{tmp_path / 'kills.db'}"
    (tmp_path / "kills.py").write_text(JOBS.format(store=store, seconds=120))
    here = Site(store, site.token_file, site.tokens, namespace="kills")
    with nodes(tmp_path, "one", "two") as running:
        run = wait_for_run(store)
        here.start()
        with chromium.tab(here) as page:
            page.goto(f"/runs/{run[1].replace('#', '%23')}")
            page.locator("#live", has_text="live").wait_for()
            running[run[0]].kill()
            begun = time.monotonic()
            page.locator("text=/taken over/i").first.wait_for(timeout=30_000)
            took = time.monotonic() - begun
            shown = page.locator("main").inner_text()
            assert "lost" in shown.lower()
            assert len(set(re.findall(r"fence (\d+)", shown))) == 2, "both fences"
            assert page.reports == []
        assert here.stop() == 0
    assert took <= 3 + 3, "the lease, and 3 s"


@pytest.mark.long
def test_a_refused_result_appears_on_the_open_page(chromium: Chromium, site: Site, tmp_path: Path) -> None:
    """A node is frozen past its lease, and wakes up when its run is another's."""
    store = f"sqlite:///{tmp_path / 'kills.db'}"
    (tmp_path / "kills.py").write_text(JOBS.format(store=store, seconds=10))
    here = Site(store, site.token_file, site.tokens, namespace="kills")
    with nodes(tmp_path, "one", "two") as running:
        node, run = wait_for_run(store)
        here.start()
        with chromium.tab(here) as page:
            page.goto(f"/runs/{run.replace('#', '%23')}")
            page.locator("#live", has_text="live").wait_for()
            running[node].send_signal(signal.SIGSTOP)
            page.locator("text=/taken over/i").first.wait_for(timeout=30_000)
            running[node].send_signal(signal.SIGCONT)
            page.locator("tr", has_text="⊗ refused at").wait_for(timeout=30_000)
            shown = page.locator("main").inner_text()
            assert f"Refused: {node} woke up and wrote “succeeded”" in shown
            assert len(set(re.findall(r"fence (\d+)", shown))) == 2, "both fences"
            assert page.reports == []
        assert here.stop() == 0


@contextmanager
def nodes(folder: Path, *names: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    command = [sys.executable, "-m", "solocron", "run", "kills:scheduler", "--node"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = {name: subprocess.Popen([*command, name], cwd=folder, **quiet) for name in names}
    try:
        yield started
    finally:
        for one in started.values():
            one.kill()
            one.wait()


def wait_for_run(store: str) -> tuple[str, str]:
    """Trigger the job once a node is there, and return the node and the run that it holds."""
    opened = make_store(store, namespace="kills")
    client = Client(opened)
    wanted, until = None, time.monotonic() + 60
    try:
        while time.monotonic() < until:
            with suppress(SolocronError):
                if wanted is None and len(client.nodes()) == 2:
                    wanted = client.trigger("long")
                for one in client.status().running:
                    assert one.node is not None
                    return one.node, one.run
            time.sleep(0.1)
    finally:
        opened.close()
    raise AssertionError("no node came, or none claimed the run")


@pytest.mark.long
def test_a_service_that_goes_and_comes_is_said(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/jobs")
        page.locator("#live", has_text="live").wait_for()
        assert site.stop() == 0
        page.locator("#live", has_text="stale since").wait_for(timeout=60_000)
        site.start()
        page.locator("#live", has_text="live").wait_for(timeout=60_000)


class _Evil(BaseHTTPRequestHandler):
    target = ""

    def do_GET(self) -> None:
        body = f"""<!doctype html><form id=f method=post action="{self.target}/jobs/usage.rollup/pause">
        <input name=note value=evil></form><img src="{self.target}/jobs/usage.rollup/pause"><script>
        const get = (path, more) => fetch("{self.target}" + path, {{credentials: "include", ...more}})
          .then((answer) => answer.text(), () => "refused");
        window.told = Promise.all([
          get("/api/v1/jobs"), get("/jobs"), get("/jobs/usage.rollup/pause", {{method: "POST", body: "note=evil",
            mode: "no-cors", headers: {{"content-type": "application/x-www-form-urlencoded"}}}}),
          get("/api/v1/jobs/usage.rollup/pause", {{method: "POST", body: "{{}}"}}),
          new Promise((done) => {{
            const one = new EventSource("{self.target}/api/v1/events", {{withCredentials: true}});
            one.onerror = () => {{ one.close(); done("refused"); }}; one.onopen = () => done("open"); }}),
        ]);</script>""".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def evil(site: Site) -> Iterator[str]:
    _Evil.target = site.address
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Evil)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_page_of_another_origin_can_do_nothing(chromium: Chromium, site: Site) -> None:
    before = site.acts()
    with chromium.tab(site) as page, evil(site) as address:
        page.goto(address)
        told = page.evaluate("window.told")
        assert "usage.rollup" not in str(told)
        assert told[-1] == "refused"
        page.evaluate("document.getElementById('f').submit()")
        page.wait_for_url("**/jobs/usage.rollup/pause")
        assert heading(page) == "Not known"  # the cookie does not come with it
        page.goto(site.address + "/jobs/usage.rollup")
        assert heading(page).startswith("usage.rollup")
    assert site.acts() == before


def test_a_login_ends_when_the_reader_says_so(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site, role=Role.READ) as page:
        page.goto("/jobs?state=failing")
        page.click("#who summary")
        page.click("text=Log out")
        assert page.url.endswith("/login")
        page.goto("/jobs?state=failing")
        assert "/login?wanted=" in page.url
        page.fill("input[name=token]", site.tokens[Role.READ])
        page.click("button[type=submit]")
        page.wait_for_url("**/jobs?state=failing")
