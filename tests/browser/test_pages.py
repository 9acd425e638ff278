"""Every page in a real browser: quiet, accessible, within its window, useful without script; hostile text is text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from solocron.service.roles import Role
from tests.browser.conftest import LOOKS, Chromium, Site
from tests.browser.fleet import HOSTILE

pytestmark = pytest.mark.may_leak("the browser and the service live as long as the tests in this folder")

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
DESK, PHONE = ("light", 1440), ("dark", 390)
OTHERS = [pair for pair in product(("light", "dark"), (1440, 760, 390, 320)) if pair != DESK]


@dataclass(frozen=True)
class Looked:
    """What one look at every page has found."""

    source: dict[str, str]
    """The pages as they were sent: all that a browser without script has."""
    text: dict[str, str]
    """What the main part of each shows."""
    found: list[str]
    """What is wrong."""


def look_at_all(
    chromium: Chromium, site: Site, first: tuple[str, int], second: tuple[str, int] | None = None
) -> Looked:
    """Visit every page once, and look at it in one or two themes and widths."""
    source, text, found = dict[str, str](), dict[str, str](), list[str]()
    with chromium.tab(site, theme=first[0], width=first[1]) as page:
        left = list(PAGES.items())
        while left:
            name, address = left.pop(0)
            answer = page.goto(address)
            source[name], text[name] = answer.text(), page.locator("main").inner_text()
            found += [] if answer.status == 200 else [f"{name}: status {answer.status}"]
            found += [f"{name} {first}: {one}" for one in (*shape(page), *chromium.findings(page))]
            if second is not None:
                dress(page, *second)
                found += [f"{name} {second}: {one}" for one in (*shape(page), *chromium.findings(page, LOOKS))]
                dress(page, *first)
            left += [(key, one.get_attribute("href")) for key, one in linked(page).get(name, {}).items()]
        found += page.reports
    return Looked(source, text, found)


def linked(page: Any) -> dict[str, dict[str, Any]]:
    """Return the pages of a run and of two nodes, by the page that leads to them."""
    nodes = page.locator("table.data td a.name")
    return {
        "lost runs": {"run": page.locator("table.data td a").first},
        "nodes": {"node": nodes.first, "dead": nodes.last},
    }


def dress(page: Any, theme: str, width: int) -> None:
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})


def shape(page: Any) -> list[str]:
    """Return what is wrong with the shape of a page: wider than its window, or with markup from data."""
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    found = [f"wider than its window: {page.evaluate(WIDE)}"] if wide else []
    return found + (["markup from data"] if page.locator("main img, main script").count() else [])


@pytest.fixture(scope="module")
def looked(chromium: Chromium, site: Site) -> Looked:
    return look_at_all(chromium, site, DESK, PHONE)


def test_every_page_is_quiet_accessible_and_fits(looked: Looked) -> None:
    assert looked.found == []


def test_every_page_tells_the_same_without_script(looked: Looked) -> None:
    assert len(looked.source) == len(PAGES) + 3
    for name, source in looked.source.items():
        assert source.count("<h1") == 1, name
        assert re.sub(r"<[^>]*>", "", source.partition("<main")[2].partition("</main>")[0]).strip(), name
    assert len(re.findall(r'<a[^>]* class="[^"]*\bcell\b', looked.source["job"])) >= 5


def test_hostile_text_is_shown_as_text(looked: Looked) -> None:
    shown = HOSTILE.replace("\u202e", "\\u202e")
    for name in ("paused job", "audit", "calendar", "failing job"):
        assert shown in looked.text[name], name


@pytest.mark.long
@pytest.mark.parametrize(("theme", "width"), OTHERS)
def test_every_page_is_so_in_each_theme_and_width(chromium: Chromium, site: Site, theme: str, width: int) -> None:
    assert look_at_all(chromium, site, (theme, width)).found == []


def test_a_takeover_and_a_refused_result_are_drawn_told_and_marked(chromium: Chromium, site: Site) -> None:
    """In the picture, in the story of the slot and in the rows: with both fences, the old one and the new one."""
    with chromium.tab(site) as page:
        page.goto("/?span=6h")
        assert page.locator("svg .takedot").count() >= 1
        assert page.locator("svg [aria-label='woke up, its result was refused']").count() == 1
        page.goto("/jobs/usage.rollup")
        page.locator("table.cal a.cell.lost").first.click()
        page.wait_for_url("**slot=**")
        story = page.locator("#story").inner_text()
        claimed, taken = (int(one) for one in re.findall(r"fence (\d+)\n", story)[:2])
        assert claimed < taken
        told = [story.index(words) for words in ("Claimed by", "Lost", "Taken over by", "Refused: ", "Succeeded")]
        assert told == sorted(told)
        assert "woke up and wrote “succeeded”" in story
        assert f"fence {claimed} was old, nothing was kept" in story
        marked = page.locator("table.data tr", has_text="⊗ refused at")
        assert marked.count() == 1
        assert marked.locator(f"td[title='{claimed}']").count() == 1, "the row of the old fence"
        page.locator("#story a", has_text="Open the run").click()
        page.wait_for_url("**/runs/**")
        rows = page.locator("table.data tr", has_text="⊗ refused at")
        assert (rows.count(), rows.locator(f"td[title='{claimed}']").count()) == (1, 1)
        assert page.locator(f"table.data td[title='{taken}']").count() == 1
        assert page.reports == []


def test_a_reader_finds_no_act(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site, role=Role.READ) as page:
        for address in ("/", "/jobs", "/jobs/usage.rollup", "/jobs/dunning.send", "/runs", "/locks"):
            source = page.request.get(address).text()
            assert "<h1" in source
            assert "data-dialog" not in source.partition("<main")[2], address
            assert 'class="pick"' not in source, address
        page.goto("/jobs/usage.rollup")
        assert page.locator("[data-dialog]").count() == 0


def test_the_switch_leads_to_another_namespace_and_back(chromium: Chromium, site: Site) -> None:
    with chromium.tab(site) as page:
        page.goto("/jobs")
        page.click("#namespaces summary")
        assert page.locator("#namespaces a").all_inner_texts() == ["default", "mail"]
        assert chromium.findings(page) == []
        page.click("#namespaces >> text=mail")
        page.wait_for_url("**/ns/mail/")
        assert page.locator("#who summary").inner_text().startswith("operate-er"), "the same login"
        page.goto("/ns/mail/jobs")
        assert "usage.rollup" not in page.locator("main").inner_text()
        page.click("#namespaces summary")
        page.click("#namespaces >> text=default")
        page.wait_for_selector("text=slots came due")
        assert page.reports == []
