"""The pages as they are served: from a real store, behind the guard, and with forms that work without script."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.model.change import Change, Kind
from solocron.service.handle import Service
from solocron.service.pages.assets import static_files, static_hash
from solocron.service.pages.overview import arguments_of, span_of
from solocron.service.roles import Role
from solocron.service.routes import ROUTES
from solocron.stores.contract import Named
from solocron.stores.url import make_store
from tests.unit.cli.kit import Shop
from tests.unit.service.browsing import HTML, SENT, Browser, form_of
from tests.unit.service.kit import World, path_of, tokens
from tests.unit.service.kit import world as open_world

PAGES = [route for route in ROUTES if route.page and not route.form and route.access != "public"]


@pytest.fixture
def own() -> World:
    """A world for a test that changes it."""
    return open_world()


@pytest.fixture
def browser(own: World) -> Browser:
    return Browser(own)


def audited(world: World) -> list[tuple[str, str, str | None, str]]:
    return [(one.act, one.subject, one.who, one.via) for one in Client(world.shop.store).audit().entries]


@pytest.mark.parametrize("route", PAGES, ids=lambda route: route.path)
def test_a_stranger_is_led_to_the_login_and_back_again(world: World, route) -> None:
    path = path_of(route, world.names)
    found = world.ask(path, role=None, accept=HTML)
    nowhere = world.ask("/no/such/page", role=None, accept=HTML)
    assert (found.status, nowhere.status) == (303, 303)
    assert (found.header("location") or "").startswith("/login?wanted=%2F")
    assert world.ask(path, role=None, accept="application/json").status == 401


def test_a_problem_is_a_page_for_a_person_and_json_for_the_api(world: World) -> None:
    page = world.ask("/jobs/nothing", accept=HTML)
    assert (page.status, page.header("content-type")) == (404, "text/html; charset=utf-8")
    assert b"there is no job &#39;nothing&#39;" in page.response.body
    assert world.ask("/api/v1/jobs/nothing", accept=HTML).header("content-type") == "application/problem+json"


def test_a_store_that_is_not_there_is_an_empty_page_and_stays_so(tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    store = make_store(f"sqlite:///{file}")
    world = World(Shop("", None, store), Service(Client(store), tokens=tokens()), {})  # type: ignore[arg-type]
    for path in ("/", "/jobs", "/runs", "/nodes", "/alarms", "/limits", "/locks", "/calendars", "/audit", "/explain"):
        found = world.ask(path, role=Role.OPERATE, accept=HTML)
        assert found.status == 200, (path, found.response.body)
    shown = world.ask("/", accept=HTML).response.body.decode()
    assert "No job is declared here yet." in shown
    assert f"scheduler = Scheduler(&#34;{store.url}&#34;)" in shown, "what it tells to do fills the store that it shows"
    assert 'name="solocron-topics" content="jobs"' in shown, "it looks again by itself"
    assert world.ask("/api/v1/jobs").status == 404
    body = b"key=k"
    sent = world.ask("/jobs/a/trigger", method="POST", role=Role.OPERATE, body=body, **SENT)
    assert sent.status == 404
    assert world.service.handle(world.head("/health/ready", "GET", None, "", "localhost", None, {})).status == 503
    assert list(tmp_path.iterdir()) == []


def test_a_store_with_a_password_is_not_spelt_out_in_the_sample() -> None:
    assert arguments_of("postgresql://app:***@db/app", "billing") == 'namespace="billing"'
    assert arguments_of("sqlite:///jobs.db", "default") == '"sqlite:///jobs.db"'


def test_a_store_that_comes_later_is_shown_without_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'later.db'}"
    store = make_store(url)
    world = World(Shop(url, None, store), Service(Client(store), tokens=tokens()), {})  # type: ignore[arg-type]
    assert b"No job is declared here yet." in world.ask("/", accept=HTML).response.body
    scheduler = Scheduler(url)
    scheduler.cron("0 3 * * *", name="hello")(lambda: None)
    scheduler.tick()
    assert b">hello</a>" in world.ask("/jobs", accept=HTML).response.body
    store.close()


def test_a_pause_by_form_says_what_it_will_do_and_is_audited(own: World, browser: Browser) -> None:
    form = browser.form("/jobs/invoices/pause")
    assert (form.action, form.method) == ("/jobs/invoices/pause", "post")
    found = browser.send(form, note="schema move", until="2999-01-01T04:00")
    assert (found.status, found.header("location")) == (303, "/jobs/invoices?done=paused")
    shown = browser.text("/jobs/invoices?done=paused")
    assert "Paused." in shown
    assert "schema move" in shown
    assert ">Resume</a>" in shown
    assert '<a href="/jobs/invoices/resume" data-dialog>Undo</a>' in shown
    assert audited(own)[0] == ("pause", "invoices", "operate-er", "dashboard")
    resumed = browser.send(browser.form("/jobs/invoices/resume"))
    assert resumed.header("location") == "/jobs/invoices?done=resumed"
    assert '<a href="/jobs/invoices/pause" data-dialog>Undo</a>' in browser.text("/jobs/invoices?done=resumed")
    assert "Undo" not in browser.text("/jobs/invoices?done=triggered")
    assert Client(own.shop.store).get_job("invoices").paused is None


def test_the_doctor_repairs_by_a_form_that_says_what_it_will_do(own: World, browser: Browser) -> None:
    assert 'href="/doctor/repair"' in browser.text("/doctor")
    form = browser.form("/doctor/repair")
    found = browser.send(form)
    assert (found.status, found.header("location")) == (303, "/doctor?done=sound")
    assert "There was nothing to repair." in browser.text("/doctor?done=sound")
    assert audited(own)[0][:2] == ("repair", "namespace")
    reader = Browser(own, Role.READ)
    assert "/doctor/repair" not in reader.text("/doctor")


def test_the_foot_shows_the_path_of_a_file_as_it_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'here.db'}"
    scheduler = Scheduler(url)
    scheduler.cron("0 3 * * *", name="a")(lambda: None)
    scheduler.tick()
    store = make_store(url)
    world = World(Shop(url, None, store), Service(Client(store), tokens=tokens()), {})  # type: ignore[arg-type]
    assert f'<span class="mono">{tmp_path / "here.db"}</span>' in world.ask("/", accept=HTML).response.body.decode()
    store.close()


def test_a_young_fleet_is_drawn_in_the_span_that_it_has_lived(own: World, browser: Browser) -> None:
    assert '<a href="/?lanes=node&amp;span=1m" aria-current="true">' in browser.text("/")
    assert '<a href="/?lanes=node&amp;span=6h" aria-current="true">' in browser.text("/?span=6h")
    ages = {timedelta(seconds=30): "1m", timedelta(minutes=9): "10m", timedelta(minutes=11): "1h", timedelta(9): "1h"}
    assert {age: span_of(age) for age in ages} == ages


def test_a_local_time_is_read_in_the_zone_that_the_form_shows(own: World, browser: Browser) -> None:
    form = browser.form("/jobs/report/pause")
    assert form.fields["zone"] == "America/New_York"
    browser.send(form, until="2999-01-01T04:00")
    paused = Client(own.shop.store).get_job("report").paused
    assert paused is not None
    assert paused.until is not None
    assert paused.until.isoformat() == "2999-01-01T09:00:00+00:00"


def test_a_form_that_is_sent_twice_is_one_run(own: World, browser: Browser) -> None:
    form = browser.form("/jobs/invoices/trigger")
    first, second = browser.send(form, payload=""), browser.send(form, payload="")
    assert first.status == 303
    assert first.header("location") == second.header("location")
    other = browser.send(browser.form("/jobs/invoices/trigger"), payload="")
    assert other.header("location") != first.header("location")


def test_a_form_of_another_login_is_refused_and_does_nothing(own: World, browser: Browser) -> None:
    form = browser.form("/jobs/invoices/pause")
    for wrong in ("", "x"):
        assert browser.send(form, csrf=wrong).status == 403
    foreign = SENT | {"sec_fetch_site": "cross-site"}
    body = "&".join(f"{name}={value}" for name, value in form.fields.items()).encode()
    sent = own.ask(form.action, method="POST", role=None, body=body, cookie=browser.cookie, **foreign)
    assert sent.status == 403
    assert audited(own) == []


def test_what_is_refused_comes_back_as_the_form_with_the_reason(own: World, browser: Browser) -> None:
    form = browser.form("/jobs/invoices/trigger")
    wrong = browser.send(form, payload="{", note="try")
    assert wrong.status == 400
    assert b"The payload is not JSON. Nothing was asked for." in wrong.response.body
    again = form_of(wrong)
    assert (again.fields["payload"], again.fields["note"]) == ("{", "try")


def test_a_resume_lifts_only_the_pause_that_was_shown(own: World, browser: Browser) -> None:
    browser.send(browser.form("/jobs/invoices/pause"))
    form = browser.form("/jobs/invoices/resume")
    own.shop.scheduler.resume("invoices")
    own.shop.later(5)
    own.shop.scheduler.pause("invoices", by="ben")
    found = browser.send(form)
    assert found.status == 409
    assert b"paused anew by ben" in found.response.body


def test_a_backfill_asks_for_its_span_then_counts_then_starts(own: World, browser: Browser) -> None:
    ask = browser.form("/jobs/report/backfill")
    assert ask.method == "get"
    given = "&".join(
        f"{name}={value}"
        for name, value in {**ask.fields, "start": "2026-01-01T00:00", "end": "2026-01-04T00:00"}.items()
    )
    counted = browser.text(f"/jobs/report/backfill?{given}")
    assert "3 slots from" in counted
    form = browser.form(f"/jobs/report/backfill?{given}")
    assert form.method == "post"
    assert browser.send(form, note="migration").header("location") == "/jobs/report?done=backfilled"
    assert Client(own.shop.store).backfills("report")[0].total == 3


def test_many_jobs_are_paused_together(own: World, browser: Browser) -> None:
    form = browser.form("/bulk?job=invoices&job=report&action=pause")
    assert browser.send(form, note="move").header("location") == "/jobs?done=paused"
    client = Client(own.shop.store)
    assert [client.get_job(name).paused is not None for name in ("invoices", "report", "broken")] == [True, True, False]
    assert len(audited(own)) == 2
    assert browser.get("/bulk").status == 400


def test_a_lock_is_released_only_with_its_name_typed(own: World, browser: Browser) -> None:
    with own.shop.scheduler.lock("till"):
        form = browser.form("/locks/till/release")
        assert browser.send(form, reason="gone", typed="tall").status == 400
        assert browser.send(form, reason="gone", typed="till").header("location") == "/locks?done=released"


def test_a_run_that_is_over_cannot_be_cancelled(own: World, browser: Browser) -> None:
    found = browser.send(browser.form(f"/runs/{own.names['run']}/cancel"))
    assert found.status == 409
    assert b"Nothing was cancelled." in found.response.body


def test_a_reader_sees_no_acts_and_cannot_open_their_forms(own: World) -> None:
    reader = Browser(own, Role.READ)
    shown = reader.text("/jobs/invoices")
    assert ("Run now" in shown, "Log out" in shown) == (False, True)
    assert 'type="checkbox" name="job"' not in reader.text("/jobs")
    assert reader.get("/jobs/invoices/pause").status == 403


def test_a_read_only_service_offers_no_acts() -> None:
    assert "Run now" not in Browser(open_world(read_only=True)).text("/jobs/invoices")


def test_values_are_shown_to_those_who_may_and_only_if_they_ask(own: World, browser: Browser) -> None:
    run = own.names["run"]
    assert "&#34;sent&#34;: 3" not in browser.text(f"/runs/{run}")
    assert "&#34;sent&#34;: 3" in browser.text(f"/runs/{run}?show=values")
    assert "&#34;sent&#34;: 3" not in Browser(own, Role.READ).text(f"/runs/{run}?show=values")


def test_the_payload_of_a_run_is_shown_until_it_has_ended(own: World, browser: Browser) -> None:
    """The log keeps no payload: of a run that has ended, the page says so instead of showing the job's own."""
    later = own.shop.scheduler.status().now + timedelta(days=9)
    waiting = own.shop.scheduler.trigger("invoices", payload={"month": 3, "password": "hunter"}, at=later)
    shown = browser.text(f"/runs/{waiting}?show=values")
    assert ("&#34;month&#34;: 3" in shown, "hunter" in shown) == (True, False)
    assert "&#34;month&#34;" not in browser.text(f"/runs/{waiting}")
    assert "&#34;month&#34;" not in Browser(own, Role.READ).text(f"/runs/{waiting}?show=values")
    over = browser.text(f"/runs/{own.names['run']}?show=values")
    assert "It is on record while the run waits or runs; this one has ended." in over
    asked = own.ask(f"/api/v1/runs/{quote(waiting)}", query="include=payload", role=Role.OPERATE).json
    assert asked["payload"] == {"month": 3, "password": "***"}
    assert own.ask(f"/api/v1/runs/{quote(waiting)}", role=Role.OPERATE).json["payload"] is None


def test_the_part_of_a_page_has_a_tag_of_its_own(browser: Browser) -> None:
    whole, part = browser.get("/jobs"), browser.get("/jobs", solocron_part="main")
    assert part.response.body.startswith(b"<main")
    assert whole.header("etag") != part.header("etag")
    assert part.header("solocron-now")


def test_static_files_may_be_kept_forever_and_another_release_has_none(world: World) -> None:
    for name, file in static_files().items():
        found = world.ask(f"/static/{static_hash()}/{name}", role=None)
        assert (found.status, found.response.body) == (200, file.content)
        assert "immutable" in (found.header("cache-control") or "")
        assert world.ask(f"/static/{'0' * 16}/{name}", role=None).status == 404


@pytest.mark.parametrize(
    ("q", "to"),
    [("invoices", "/jobs/invoices"), ("oices", "/jobs/invoices"), ("report 02:30", "/jobs/report/why?at=")],
)
def test_a_name_that_means_one_thing_leads_there(world: World, q: str, to: str) -> None:
    found = world.ask("/find", query=urlencode({"q": q}), accept=HTML)
    assert (found.status, (found.header("location") or "").startswith(to)) == (303, True)


def test_times_are_told_in_the_zone_that_was_chosen_and_links_keep_it(browser: Browser) -> None:
    shown = browser.text("/jobs/report?tz=Asia/Tokyo")
    assert "Tokyo" in shown
    assert "/jobs?tz=Asia%2FTokyo" in shown
    assert browser.get("/jobs?tz=Nowhere").status == 400


def test_every_page_is_shown_below_a_base_path(own: World) -> None:
    for route in PAGES:
        if route.access != "read":
            continue
        head = own.head(path_of(route, own.names), "GET", Role.READ, "", "localhost", None, {"accept": HTML})
        found = own.service.handle(replace(head, base="/a/b"))
        assert found.status in (200, 303), found.body
        assert b'href="/jobs' not in found.body


@pytest.mark.parametrize("address", ["/jobs/report", "/jobs", "/api/v1/jobs/report", "/api/v1/jobs"])
def test_a_page_that_shows_a_pause_is_told_when_it_is_gone_although_no_pass_has_seen_it(
    own: World, browser: Browser, address: str
) -> None:
    """From Python and without an author: neither an act nor the number of paused jobs tells it."""
    watcher = own.service.watcher
    watcher.look(at_once=True)
    own.shop.scheduler.pause("report")
    assert b"ause" in browser.get(address, accept="*/*").response.body
    own.shop.scheduler.resume("report")
    before = watcher.changes.position
    watcher.look(at_once=True)
    changes, _ = watcher.changes.since(before)
    assert "job:report" in {topic for one in changes or () for topic in one.topics}


def test_what_is_set_aside_is_told_where_one_looks_and_tried_again_by_its_form(own: World, browser: Browser) -> None:
    def breaks(doc: object, now: int) -> Change:
        raise ValueError("no such zone")

    again = "/set-aside/job/report/unblock"
    assert all(again not in browser.text(address) for address in ("/", "/jobs/report", "/doctor"))
    store = own.shop.store
    for _ in range(6):  # each time for twice as long: the last is minutes, whatever this machine does meanwhile
        for aside in store.blocked():
            store.shift_clock(aside.until - store.clock())
        store.update(Named(Kind.JOB, ("report",)), breaks)
    own.service._board.forget()  # a page may be half a second old
    reader = Browser(own, Role.READ)
    for address in ("/", "/jobs/report", "/doctor"):
        shown = browser.text(address)
        assert "no such zone" in shown, address
        assert f'href="{again}" data-dialog' in shown, address
        assert again not in reader.text(address), "a reader is told, and cannot act"
    found = browser.send(browser.form(again))
    assert (found.status, found.header("location")) == (303, "/doctor?done=unblocked")
    assert list(store.blocked()) == []
    assert audited(own)[0][:2] == ("unblock", "job report")
