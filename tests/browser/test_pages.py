"""Every page in a real browser: quiet, accessible, within its window, useful without script; hostile text is text."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from solocron.service.roles import Role
from tests.browser.conftest import Chromium, Site
from tests.browser.fleet import HOSTILE

pytestmark = pytest.mark.may_leak("the browser and the service live as long as this file")

PAGES = {
    "overview": "/",
    "by job": "/?lanes=job&span=6h",
    "wall": "/?tv=1",
    "accounting": "/accounting",
    "jobs": "/jobs",
    "no job": "/jobs?q=nothing",
    "job": "/jobs/usage.rollup",
    "frequent job": "/jobs/webhooks.flush?tz=Asia/Tokyo",
    "failing job": "/jobs/dunning.send?status=not_well",
    "paused job": "/jobs/etl.load",
    "job that never ran": "/jobs/reports.yearly",
    "why": "/jobs/usage.rollup/why",
    "runs": "/runs",
    "lost runs": "/runs?status=lost",
    "nodes": "/nodes?state=ended",
    "alarms": "/alarms",
    "closed alarms": "/alarms?state=closed",
    "limits": "/limits",
    "locks": "/locks",
    "calendars": "/calendars",
    "calendar": "/calendars/bank",
    "audit": "/audit",
    "doctor": "/doctor",
    "explain": "/explain?expression=15+2+*+*+*&zone=Europe/Vienna",
    "find": "/find?q=r",
    "pause": "/jobs/usage.rollup/pause",
    "trigger": "/jobs/usage.rollup/trigger",
    "backfill": "/jobs/usage.rollup/backfill",
    "bulk": "/bulk?job=usage.rollup&job=etl.load",
}
WIDE = """[...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => `${one.localName}.${one.getAttribute("class")}`).slice(0, 6)"""
USUAL = [("light", 1440), ("dark", 390)]
OTHERS = [pair for pair in product(("light", "dark"), (1440, 760, 390, 320)) if pair not in USUAL]


def every_address(page: Any) -> dict[str, str]:
    """Return the pages, with a run and a node that are there."""
    page.goto("/runs?status=lost")
    run = page.locator("table.data td a").first.get_attribute("href")
    page.goto("/nodes?state=ended")
    nodes = page.locator("table.data td a.name")
    return PAGES | {"run": run, "node": nodes.first.get_attribute("href"), "dead": nodes.last.get_attribute("href")}


def examine(chromium: Chromium, site: Site, theme: str, width: int) -> list[str]:
    found: list[str] = []
    with chromium.tab(site, theme=theme, width=width) as page:
        for name, address in every_address(page).items():
            answer = page.goto(address)
            where = f"{name} ({theme}, {width})"
            if answer.status != 200:
                found.append(f"{where}: status {answer.status}")
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{where}: wider than its window: {page.evaluate(WIDE)}")
            if page.locator("main img, main script").count():
                found.append(f"{where}: markup from data")
            found += [f"{where}: {one}" for one in chromium.findings(page)]
        found += page.reports
    return found


@pytest.mark.parametrize(("theme", "width"), USUAL)
def test_every_page_is_quiet_accessible_and_fits(chromium: Chromium, site: Site, theme: str, width: int) -> None:
    assert examine(chromium, site, theme, width) == []


@pytest.mark.long
@pytest.mark.parametrize(("theme", "width"), OTHERS)
def test_every_page_is_so_in_each_theme_and_width(chromium: Chromium, site: Site, theme: str, width: int) -> None:
    assert examine(chromium, site, theme, width) == []


def test_every_page_tells_the_same_without_script(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site, java_script_enabled=False) as page:
        for name, address in every_address(page).items():
            assert page.goto(address).status == 200, name
            assert page.locator("h1").count() == 1, name
            assert page.locator("main").inner_text().strip(), name
        page.goto("/jobs/usage.rollup")
        assert page.locator("table.cal a.cell").count() >= 5


def test_hostile_text_is_shown_as_text(chromium: Chromium, site: Site) -> None:
    shown = HOSTILE.replace("\u202e", "\\u202e")
    with chromium.tab(site) as page:
        for address in ("/jobs/etl.load", "/audit", "/calendars/bank"):
            page.goto(address)
            assert shown in page.locator("main").inner_text(), address
        page.goto("/jobs/dunning.send?status=not_well")
        assert shown in page.locator("main").inner_text()
        assert page.reports == []


def test_the_picture_of_a_takeover_is_drawn_from_the_log(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/?span=6h")
        assert page.locator("svg .takedot").count() >= 1
        page.goto("/jobs/usage.rollup")
        taken = page.locator("table.cal a.cell.lost").first
        taken.click()
        story = page.locator("#story").inner_text()
        assert "Lost" in story
        assert "Taken over by" in story


def test_a_reader_finds_no_act(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site, role=Role.READ) as page:
        for address in ("/", "/jobs", "/jobs/usage.rollup", "/jobs/dunning.send", "/runs", "/locks"):
            page.goto(address)
            assert page.locator("[data-dialog], td.pick input").count() == 0, address
