"""A reader with a browser: a login by cookie, pages as HTML, and forms sent as a browser sends them."""

from __future__ import annotations

import html.parser
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from solocron.service.roles import Role
from tests.unit.service.kit import TOKENS, Reply, World

__all__ = ["Browser", "Form"]

HTML = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
SENT = {"content_type": "application/x-www-form-urlencoded", "sec_fetch_site": "same-origin", "accept": HTML}


@dataclass
class Form:
    """A form of a page: where it goes, and its fields as they stand."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class _Forms(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._area = self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.found.append(Form(given.get("action") or "", given.get("method") or "get"))
        elif tag == "input" and self.found and given.get("name") and given.get("type") != "checkbox":
            self.found[-1].fields[given["name"] or ""] = given.get("value") or ""
        elif tag == "textarea":
            self._area = given.get("name") or ""
            self.found[-1].fields[self._area] = ""
        elif tag == "select":
            self._select = given.get("name") or ""
        elif tag == "option" and "selected" in given:
            self.found[-1].fields[self._select] = given.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.found[-1].fields[self._area] += data


class Browser:
    """One login of a role."""

    def __init__(self, world: World, role: Role = Role.OPERATE) -> None:
        self.world = world
        found = self.post("/login", {"token": TOKENS[role], "wanted": "/"}, cookie="")
        self.cookie = (found.header("set-cookie") or "").partition(";")[0]
        assert self.cookie

    def get(self, address: str, **headers: str) -> Reply:
        """Open a page."""
        path, _, query = address.partition("?")
        return self.world.ask(path, role=None, query=query, cookie=self.cookie, **({"accept": HTML} | headers))

    def text(self, address: str) -> str:
        """Return a page as text; it must be there."""
        found = self.get(address)
        assert found.status == 200, found.response.body
        return found.response.body.decode()

    def form(self, address: str) -> Form:
        """Open the page of an act and return its form."""
        return form_of(self.get(address))

    def send(self, form: Form, **typed: str) -> Reply:
        """Send a form with what the reader typed."""
        return self.post(form.action, form.fields | typed)

    def post(self, address: str, fields: dict[str, Any], *, cookie: str | None = None) -> Reply:
        """Send fields as a browser sends a form of the same page."""
        path, _, query = address.partition("?")
        own = self.cookie if cookie is None else cookie
        body = urlencode(fields).encode()
        return self.world.ask(path, method="POST", role=None, query=query, body=body, cookie=own, **SENT)


def form_of(reply: Reply) -> Form:
    """Return the form of the act on a page."""
    reader = _Forms()
    reader.feed(reply.response.body.decode().partition('id="act"')[2] or reply.response.body.decode())
    return reader.found[0]
