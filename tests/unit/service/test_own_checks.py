"""What the doctor says about the service itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solocron import Scheduler
from solocron.service import Identity
from solocron.service.own_checks import checks_of
from solocron.service.roles import Role
from solocron.service.server import Listening
from solocron.service.tokens import TokenFile, add_token
from tests.unit.service.test_mounting import get

DAY = 86_400


def told(**options: Any) -> dict[str, tuple[str, str]]:
    given = {"listening": None, "tokens": None, "hosts": {"localhost"}} | options
    return {check.name: (check.level, check.detail) for check in checks_of(**given)}


@pytest.mark.parametrize(
    ("listening", "detail"),
    [
        (Listening(), "127.0.0.1:8700, without TLS; this machine only"),
        (Listening(host="0.0.0.0", tls_cert="a", tls_key="b"), "0.0.0.0:8700, with TLS of its own"),
        (Listening(host="10.1.2.3", proxies=("10.0.0.0/8",)), "10.1.2.3:8700, without TLS, behind 10.0.0.0/8"),
    ],
)
def test_where_it_listens(listening: Listening, detail: str) -> None:
    assert told(listening=listening)["service address"] == ("OK", detail)


def test_below_which_path_and_under_which_names() -> None:
    found = told(listening=Listening(base="/jobs"), hosts=["b.example", "a.example"])
    assert found["service path"] == ("OK", "below /jobs")
    assert found["service hosts"] == ("OK", "it answers as a.example, b.example")


def test_who_may_ask_and_how_old_the_file_is(tmp_path: Path) -> None:
    for name, role in (("ana", Role.OPERATE), ("bob", Role.READ), ("eve", Role.READ)):
        add_token(tmp_path / "tokens", name, role)
    file, changed = TokenFile(tmp_path / "tokens"), (tmp_path / "tokens").stat().st_mtime
    level, detail = told(tokens=file, wall=lambda: changed + 3 * DAY)["service tokens"]
    assert (level, detail) == ("OK", "1 operate, 2 read; the file was changed 3 days ago")
    assert told(tokens=file, wall=lambda: changed + 400 * DAY)["service tokens"][0] == "WARN"
    (tmp_path / "tokens").chmod(0o644)
    level, detail = told(tokens=file)["service tokens"]
    assert (level, "no token is accepted" in detail) == ("WARN", True)


def test_a_service_that_lets_no_caller_in_says_so() -> None:
    assert told()["service tokens"] == ("WARN", "no caller is let in")
    assert told(has_auth=True)["service tokens"] == ("OK", "the host application knows its users")


def test_the_lines_follow_those_of_the_store(tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}")
    scheduler.every("1h", name="bill")(lambda: None)
    scheduler.tick()
    app = scheduler.wsgi(auth=lambda headers, cookies: Identity("ana"))
    names = [check["name"] for check in get(app, "/api/v1/doctor")[1]["checks"]]
    assert names[0] == "store"
    assert names[-2:] == ["service tokens", "service hosts"]
    app.close()
