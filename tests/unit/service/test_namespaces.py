"""Several namespaces behind one address: a token opens those that it is bound to, and the switch shows no other."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.errors import ConfigurationError
from solocron.service.asgi import AsgiService
from solocron.service.handle import Service
from solocron.service.host_auth import HostAuthentication
from solocron.service.namespaces import NamespacesApp, paths_of
from solocron.service.roles import Identity, Role
from solocron.service.tokens import FixedTokens, TokenEntry, hash_of, new_token
from solocron.stores.memory import MemoryStore
from tests.unit.service.browsing import HTML
from tests.unit.service.test_adapters import Answer, ask, scope

NAMES = ("billing", "mail", "etl")
BOUND = {"all": None, "one": frozenset(["mail"]), "two": frozenset(["billing", "mail"]), "none": frozenset(["gone"])}
TOKENS = {who: new_token() for who in BOUND}
JOBS = "/api/v1/jobs/{}-job"
_numbers = itertools.count()


class Estate:
    """Three namespaces of one store, each with a job named after it, served below /a."""

    def __init__(self) -> None:
        store, base, paths = f"estate-{next(_numbers)}", "/a", paths_of(NAMES, "")
        self.stores = {name: MemoryStore(store, namespace=name) for name in NAMES}
        tokens = FixedTokens(
            *(TokenEntry(who, Role.OPERATE, hash_of(TOKENS[who]), bound) for who, bound in BOUND.items())
        )
        services: dict[str, AsgiService] = {}
        for name, path in paths.items():
            scheduler = Scheduler(f"memory://{store}", namespace=name)
            scheduler.every("1h", name=f"{name}-job")(lambda: None)
            scheduler.tick()
            service = Service(
                Client(self.stores[name]), tokens=tokens, namespaces=paths, pause=lambda seconds: None, live=False
            )
            services[name] = AsgiService(service, base=f"{base}{path}", below=path)
        self.app = NamespacesApp(services["billing"], {name: services[name] for name in NAMES[1:]}, base=base)

    def ask(self, path: str, who: str | None = None, *, method: str = "GET", body: bytes = b"", **more: str) -> Answer:
        known = {} if who is None else {"authorization": f"Bearer {TOKENS[who]}"}
        return asyncio.run(ask(self.app, scope(f"/a{path}", method=method, **known, **more), body))  # type: ignore[arg-type]


@pytest.fixture
def estate() -> Any:
    made = Estate()
    yield made
    for app in (made.app._first, *made.app._others.values()):
        app.close()


def test_a_token_of_one_namespace_is_refused_in_every_other_and_learns_nothing_of_them(estate: Estate) -> None:
    assert estate.ask("/ns/mail" + JOBS.format("mail"), "one")[0] == 200
    refused = [
        estate.ask(path, "one")
        for path in (
            JOBS.format("billing"),
            "/ns/etl" + JOBS.format("etl"),
            "/ns/etl/api/v1/no/such/path",
            "/ns/not-served/api/v1/jobs",
            "/ns/not-served",
        )
    ]
    bodies = {re.sub(rb"req-\w+", b"", body) for _, _, body in refused}
    assert ({status for status, _, _ in refused}, len(bodies)) == ({403}, 1)
    before = [store.statements.total() for store in estate.stores.values()]
    wrong = estate.ask("/ns/etl" + JOBS.format("etl") + "/pause", "one", method="POST", body=b"{}")
    assert (wrong[0], json.loads(wrong[2])["detail"]) == (
        403,
        "This caller may not see this namespace. Nothing was done.",
    )
    assert [store.statements.total() for store in estate.stores.values()] == before


def test_a_token_of_all_finds_each_and_what_is_not_served_is_not_there(estate: Estate) -> None:
    assert estate.ask(JOBS.format("billing"), "all")[0] == 200
    for name in NAMES[1:]:
        assert estate.ask(f"/ns/{name}" + JOBS.format(name), "all")[0] == 200
        assert estate.ask(f"/ns/{name}" + JOBS.format("billing"), "all")[0] == 404
    assert estate.ask("/ns/not-served/api/v1/jobs", "all")[0] == 404
    assert {estate.ask(path)[0] for path in ("/ns/mail/api/v1/jobs", "/ns/not-served/jobs", "/api/v1/jobs")} == {401}


@pytest.mark.parametrize(("who", "seen"), [("all", NAMES), ("two", ("billing", "mail"))])
def test_the_switch_lists_what_the_caller_may_see(estate: Estate, who: str, seen: tuple[str, ...]) -> None:
    addresses = {name: "/a/" if name == "billing" else f"/a/ns/{name}/" for name in seen}
    assert json.loads(estate.ask("/api/v1/me", who)[2])["namespaces"] == addresses
    page = estate.ask("/ns/mail/jobs", who, accept=HTML)[2].decode()
    menu = page.partition('id="namespaces"')[2].partition("</details>")[0]
    assert re.findall(r'<a href="([^"]*)"', menu) == list(addresses.values())
    assert re.findall(r'aria-current="true">(\w+)<', menu) == ["mail"]
    assert ("etl" in menu) == (who == "all")


def test_one_namespace_is_no_choice(estate: Estate) -> None:
    page = estate.ask("/ns/mail/jobs", "one", accept=HTML)[2].decode()
    assert "mail-job" in page
    assert 'id="namespaces"' not in page
    assert "billing" not in page


def test_a_login_counts_for_all_namespaces_and_leads_to_the_first_that_is_open(estate: Estate) -> None:
    sent = {"content_type": "application/x-www-form-urlencoded", "sec_fetch_site": "same-origin", "accept": HTML}
    answer = estate.ask("/login", method="POST", body=f"token={quote(TOKENS['one'])}&wanted=".encode(), **sent)
    assert (answer[0], answer[1]["location"]) == (303, "/a/")
    assert "; Path=/a;" in answer[1]["set-cookie"]
    cookie = answer[1]["set-cookie"].partition(";")[0]
    moved = estate.ask("/", cookie=cookie, accept=HTML)
    assert (moved[0], moved[1]["location"]) == (303, "/a/ns/mail/")
    assert estate.ask("/ns/mail/", cookie=cookie, accept=HTML)[0] == 200
    assert estate.ask("/jobs", cookie=cookie, accept=HTML)[0] == 403
    failed = estate.ask("/login", method="POST", body=f"token={quote(TOKENS['none'])}&wanted=".encode(), **sent)
    assert (failed[1]["location"], failed[1].get("set-cookie")) == ("/a/login?failed=1", None)


def test_a_service_of_one_namespace_refuses_tokens_of_others() -> None:
    service = Service(
        Client(MemoryStore(f"alone-{next(_numbers)}", namespace="billing")),
        tokens=FixedTokens(TokenEntry("one", Role.READ, hash_of(TOKENS["one"]), frozenset(["mail"]))),
    )
    app = AsgiService(service)
    known = {"authorization": f"Bearer {TOKENS['one']}"}
    assert {asyncio.run(ask(app, scope(path, **known)))[0] for path in ("/", "/api/v1/me", "/nothing")} == {403}
    options = asyncio.run(ask(app, scope("/api/v1/me", method="OPTIONS", **known)))
    assert options[0] == 403
    app.close()


def test_the_host_application_may_bind_its_users_too(estate: Estate) -> None:
    ana = Identity("ana", namespaces=frozenset(["mail"]))
    found = HostAuthentication(lambda headers, cookies: ana).find_now(_head())
    assert found is not None
    assert found.identity == ana
    wrong = replace(ana, namespaces="mailing")  # type: ignore[arg-type]
    assert HostAuthentication(lambda headers, cookies: wrong).find_now(_head()) is None


def _head() -> Any:
    from solocron.service.request import RequestHead

    return RequestHead(id="x", method="GET", path="/")


@pytest.mark.parametrize("names", [["a", "b", "a"], ["a", *(f"n{number}" for number in range(50))], ["a", ".."]])
def test_namespaces_that_cannot_be_told_apart_are_refused(names: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="Nothing listens"):
        paths_of(names, "Nothing listens.")
