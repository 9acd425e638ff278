"""What a reader's system asks for: forced colours, paper, no motion, a tab in the background; and every dialog."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.model.change import Change, Kind
from solocron.model.documents.audit import Act
from solocron.service.roles import RouteAccess
from solocron.service.routes import ROUTES
from solocron.stores.contract import Named
from solocron.stores.url import make_store
from tests.browser.conftest import LOOKS, Chromium, Site

pytestmark = pytest.mark.may_leak("the browser and the service live as long as the tests in this folder")

PRINTED = ("/", "/jobs", "/jobs/usage.rollup", "/jobs/dunning.send", "/runs?status=failed", "/nodes?state=ended")
PAPER = {"width": 1047, "height": 718}
"""A4 across, less margins of 10 mm, in CSS pixels."""

ACTS = {
    "/jobs/{job}/trigger": ("/jobs/usage.rollup", "/jobs/usage.rollup/trigger"),
    "/jobs/{job}/pause": ("/jobs/usage.rollup", "/jobs/usage.rollup/pause"),
    "/jobs/{job}/resume": ("/jobs/etl.load", "/jobs/etl.load/resume"),
    "/jobs/{job}/backfill": ("/jobs/usage.rollup", "/jobs/usage.rollup/backfill"),
    "/jobs/{job}/rerun": ("/jobs/usage.rollup", "/jobs/usage.rollup/rerun"),
    "/runs/{run}/cancel": ("RUN", "/cancel"),
    "/locks/{lock}/release": ("/locks", "/locks/till/release"),
    "/doctor/repair": ("/doctor", "/doctor/repair"),
    "/set-aside/{kind}/{document}/unblock": ("/jobs/reports.yearly", "/set-aside/job/reports.yearly/unblock"),
    "/bulk": ("/jobs", ""),
}
"""By the route of each act, the page that leads to it, and how the address of its link ends."""


@contextmanager
def with_every_act(site: Site) -> Iterator[str]:
    """Let every act have its occasion: a run that waits, whose address is yielded, a held lock, a job set aside."""
    store = make_store(site.store)
    scheduler = Scheduler(site.store, node="locker")

    def breaks(doc: Any, now: int) -> Change:
        raise ValueError("its document cannot be read")

    try:
        run = Client(store).trigger("reports.yearly", key="dialogs")
        store.update(Named(Kind.JOB, ("reports.yearly",)), breaks)
        with sqlite3.connect(site.store.removeprefix("sqlite:///")) as file:  # ten seconds are too short for all this
            file.execute("UPDATE solocron_jobs SET blocked_until = blocked_until + 3600000000")
        file.close()
        with scheduler.lock("till"):
            yield f"/runs/{run}"
        store.unblock(Kind.JOB, "reports.yearly")
        Client(store).cancel(run)
    finally:
        scheduler.stop()
        store.close()


def open_act(page: Any, path: str) -> None:
    """Open the dialog of an act as a reader does."""
    if path:
        link = page.locator(f"main a[data-dialog][href$='{path}']").first
        if not link.is_visible():  # in the menu of what is asked for less often
            page.click("#more > summary")
        link.click()
    else:
        page.check("input[value='usage.rollup']")
        page.click("text=Pause the selected")
    page.locator("dialog#dialog[open] h1").wait_for()


def test_every_act_opens_a_dialog_without_a_finding_in_both_themes(chromium: Chromium, site: Site) -> None:
    acts = {one.path for one in ROUTES if one.method == "GET" and one.page and one.access is RouteAccess.OPERATE}
    assert acts == ACTS.keys(), "every act has a dialog"
    found = list[str]()
    with with_every_act(site) as run, chromium.tab(site) as page:
        at = ""
        for address, path in sorted(ACTS.values()):
            if address != at:
                page.goto(address.replace("RUN", run))
                at = address
            open_act(page, path)
            found += [f"{path}: {one}" for one in chromium.findings(page, within="#dialog")]
            page.emulate_media(color_scheme="dark")
            found += [f"{path}, dark: {one}" for one in chromium.findings(page, LOOKS, within="#dialog")]
            page.emulate_media(color_scheme="light")
            assert page.evaluate("document.getElementById('dialog').contains(document.activeElement)"), path
            page.keyboard.press("Escape")
            page.locator("dialog#dialog").wait_for(state="hidden")
            assert page.evaluate("document.activeElement !== document.body"), f"{path}: the focus goes back"
        page.keyboard.press("?")
        page.locator("dialog#keys").wait_for()
        found += [f"keys: {one}" for one in chromium.findings(page, within="#keys")]
        assert page.reports == []
    assert found == []


def test_a_backfill_is_asked_for_and_shown_in_one_dialog(chromium: Chromium, site: Site) -> None:
    """Its second question is the answer of the first one's form: the page below stays where it is."""
    with chromium.tab(site) as page:
        page.goto("/jobs/usage.rollup")
        open_act(page, "/backfill")
        page.fill("dialog input[name=start]", "2026-01-01T00:00")
        page.fill("dialog input[name=end]", "2026-01-01T03:00")
        page.keyboard.press("Enter")
        page.locator("dialog#dialog", has_text="3 slots from").wait_for()
        assert page.url.endswith("/jobs/usage.rollup")
        assert page.reports == []


CHOSEN = """() => [...document.querySelectorAll("[aria-current]")].filter((one) => one.checkVisibility()).map((one) => {
  const of = getComputedStyle(one);
  return [one.textContent.trim(), of.outlineStyle];
})"""
SEEN = """(kind) => [...document.querySelectorAll(kind)].filter((one) => one.checkVisibility()).map((one) => {
  const of = getComputedStyle(one);
  return [one.className, of.backgroundColor, of.backgroundImage, of.boxShadow, of.forcedColorAdjust].join(" | ");
})"""


def test_forced_colours_leave_every_shape_and_choice_to_be_seen(chromium: Chromium, site: Site) -> None:
    """Such a mode paints every ground in one colour: what only a ground tells would be gone."""
    with chromium.tab(site) as page:
        page.emulate_media(forced_colors="active")
        page.goto("/jobs/usage.rollup")
        assert page.evaluate("matchMedia('(forced-colors: active)').matches")
        chosen = page.evaluate(CHOSEN)
        assert {words for words, _ in chosen} >= {"all"}
        assert {outline for _, outline in chosen} == {"solid"}, chosen
        kinds = page.evaluate(SEEN, ".calfoot .swatch")
        looks = [one.partition(" | ")[2] for one in kinds]
        assert len(set(looks)) == len(kinds) >= 4, kinds
        assert page.evaluate("getComputedStyle(document.querySelector('.cell.sel')).outlineStyle") == "solid"
        assert chromium.findings(page, ["color-contrast"]) == []
        page.goto("/?span=6h")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for kind in ("nav .brand svg", ".node.live .state", ".ledger .key.ok", ".live i", "progress"):
            for one in page.evaluate(SEEN, kind):
                assert "svg" in kind or one.endswith("none"), one
                assert "svg" in kind or one.split(" | ")[1] != ground, one
        assert chromium.findings(page, ["color-contrast"]) == []


CUT = """() => [...document.querySelectorAll("main *, .side *, .top *")].filter((one) => one.checkVisibility()).flatMap(
  (one) => {
    const of = getComputedStyle(one), scrolls = /auto|scroll/.test(of.overflowX + of.overflowY);
    const wide = one.scrollWidth > one.clientWidth + 1, high = one.scrollHeight > one.clientHeight + 1;
    const cut = of.textOverflow === "ellipsis" && of.overflowX === "hidden" && wide;
    return (scrolls && (wide || high)) || cut ? [`${one.localName}.${one.className}: ${one.textContent}`] : [];
  })"""
LIGHT = """(kind) => {
  const [r, g, b, a] = getComputedStyle(document.querySelector(kind)).backgroundColor.match(/[\\d.]+/g).map(Number);
  return a === 0 ? 255 : (r + g + b) / 3;
}"""
SHAPES = ".cell, .key, .node .state, progress"


def test_paper_gets_everything_on_a_light_ground(chromium: Chromium, site: Site) -> None:
    """Nothing scrolls on paper, and a reader with a dark theme does not print a dark page."""
    with chromium.tab(site, theme="dark") as page:
        for address in PRINTED:
            page.goto(address)
            page.evaluate("document.documentElement.dataset.theme = 'dark'")
            columns = page.locator("main th:visible").all_inner_texts()
            assert page.evaluate(LIGHT, "body") < 60
            page.emulate_media(media="print")
            page.set_viewport_size(PAPER)
            assert page.evaluate(LIGHT, "body") > 200, address
            assert page.evaluate(LIGHT, "main .card, main .facts") > 200, address
            assert page.evaluate(CUT) == [], address
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
            left_out = set(columns) - {*page.locator("main th:visible").all_inner_texts(), "select"}
            assert left_out == set(), f"{address}: no column is left out"
            for told in (".ns", "#clock", "h1"):
                assert page.locator(told).first.is_visible(), f"{address}: {told}"
            for kept in (".find", ".acts .btn", "#live", "#who"):
                assert not page.locator(kept).first.is_visible(), f"{address}: {kept} is of no use on paper"
            inked = "kind => [...document.querySelectorAll(kind)].map((one) => getComputedStyle(one).printColorAdjust)"
            assert set(page.evaluate(inked, SHAPES)) <= {"exact"}, address
            page.emulate_media(media="screen")
            page.set_viewport_size({"width": 1440, "height": 900})
        page.goto("/runs?status=failed")
        page.locator("table.data td a").first.click()
        page.locator("details.error").wait_for()
        page.emulate_media(media="print")
        assert page.evaluate(CUT) == [], "a traceback is printed to its end"


MOVING = "document.getAnimations().length"


def test_nothing_moves_for_a_reader_who_wants_no_motion(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.emulate_media(reduced_motion="no-preference")
        page.goto("/")
        assert page.evaluate(MOVING) > 0, "else this test would show nothing"
        page.emulate_media(reduced_motion="reduce")
        for address in ("/", "/jobs", "/jobs/usage.rollup"):
            page.goto(address)
            page.locator("#live", has_text="live").wait_for()
            assert page.evaluate(MOVING) == 0, address
        page.keyboard.press("p")
        page.locator("dialog#dialog[open]").wait_for()
        assert page.evaluate(MOVING) == 0


HIDES = """
let hidden = false;
Object.defineProperty(Document.prototype, "hidden", { get: () => hidden });
Object.defineProperty(Document.prototype, "visibilityState", { get: () => (hidden ? "hidden" : "visible") });
window.hide = (is) => { hidden = is; document.dispatchEvent(new Event("visibilitychange")); };
window.streams = [];
window.EventSource = class extends EventSource { constructor(at) { super(at); streams.push(this); } };
"""
OPEN_STREAMS = "streams.filter((one) => one.readyState !== EventSource.CLOSED).length"


def test_a_hidden_tab_asks_for_nothing_and_catches_up_when_it_is_shown(chromium: Chromium, site: Site) -> None:
    told = "td[data-of=next]:text('while hidden')"  # a slot skipped meanwhile has the note too, and keeps it
    with chromium.tab(site) as page:
        page.add_init_script(HIDES)
        page.clock.install()
        seen = page.context.new_page()
        for one in (page, seen):
            one.goto("/jobs")
            one.locator("#live", has_text="live").wait_for()
        page.evaluate("hide(true)")
        asked = list[str]()
        page.on("request", lambda request: asked.append(request.url))
        with site.client() as client, client.audited(Act(act="pause", subject="webhooks.flush", via="cli", who="ben")):
            client.pause("webhooks.flush", by="ben", note="while hidden")
        seen.locator(told).wait_for()  # the stream of the hidden tab was told at the same time
        page.clock.fast_forward(10_000)
        assert page.evaluate(OPEN_STREAMS) == 1, "one that is hidden for a moment is told at once when it is shown"
        page.clock.fast_forward(60_000)
        assert page.evaluate(OPEN_STREAMS) == 0, "one that is hidden for longer holds no stream"
        page.clock.fast_forward(60_000)
        assert page.locator(told).count() == 0
        assert asked == []
        page.evaluate("hide(false)")
        page.locator(told).wait_for()
        page.locator("#live", has_text="live").wait_for()
        assert page.evaluate(OPEN_STREAMS) == 1
        assert page.locator("#old").is_hidden()
        with site.client() as client, client.audited(Act(act="resume", subject="webhooks.flush", via="cli", who="ben")):
            client.resume("webhooks.flush", by="ben")
        page.locator(told).wait_for(state="detached")
        assert page.reports == []


OUT_OF_BAR = """() => [...document.querySelectorAll("nav.side > *")].filter((one) => one.checkVisibility())
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.textContent.trim())"""


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_has_every_section_at_its_bottom(chromium: Chromium, site: Site, width: int) -> None:
    """With several namespaces their switch stood there too and pushed "More" out of the window."""
    with chromium.tab(site, width=width) as page:
        page.goto("/")
        assert page.evaluate(OUT_OF_BAR) == []
        assert page.locator("#namespaces").is_hidden()
        page.click("nav.side .more-sections > summary")
        page.locator("nav.side .more-sections a", has_text="Audit").click()
        page.wait_for_url("**/audit")
        page.click("nav.side .more-sections > summary")
        page.locator("nav.side .more-sections a", has_text="mail").click()
        page.wait_for_url("**/ns/mail/")
        assert page.reports == []


NEWEST = """() => [...document.querySelectorAll("svg.strip")].slice(0, 2).map((strip) => {
  const box = strip.querySelector("rect:last-of-type").getBoundingClientRect();
  return strip.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
})"""


def test_a_phone_shows_the_newest_slot_of_a_job(chromium: Chromium, site: Site) -> None:
    """Another cell of its card lay above the end of the strip."""
    with chromium.tab(site, width=390) as page:
        page.goto("/jobs")
        page.locator("svg.strip").first.wait_for()
        page.locator("svg.strip").first.scroll_into_view_if_needed()
        found = page.evaluate(NEWEST)
        assert found
        assert all(found), found
