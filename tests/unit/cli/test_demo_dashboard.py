"""`solocron demo --serve`: the dashboard of a store, reached by a link that logs in once."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from solocron.demo.dashboard import Dashboard


def test_its_link_opens_the_overview_once_and_makes_no_store(tmp_path: Path) -> None:
    with Dashboard(f"sqlite:///{tmp_path / 'demo.db'}", "default") as served:
        reader = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        reader.addheaders = [("Accept", "text/html")]
        with reader.open(served.link, timeout=20) as page:
            assert page.url == served.address
            assert b"No job is declared here yet." in page.read()
        again = urllib.request.build_opener()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            again.open(served.address + "jobs", timeout=20)
    assert list(tmp_path.iterdir()) == []
