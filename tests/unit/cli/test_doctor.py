"""`doctor`: the table, the JSON, the exit code, and `--repair` from end to end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from solocron import Scheduler
from solocron.service.roles import Role
from solocron.service.tokens import add_token
from solocron.stores.url import make_store
from tests.unit.cli.kit import Answer, Cli, Shop
from tests.unit.doctor.kit import PatientRuntime, job, put, session


@pytest.fixture
def file_store(elsewhere: Path) -> str:
    """A SQLite file with a job in it, whose node has stopped."""
    elsewhere.chmod(0o700)
    scheduler = Scheduler("sqlite:///doctor.db")
    scheduler.every("1h", name="work")(lambda: None)
    scheduler.tick()
    return "sqlite:///doctor.db"


def levels(answer: Answer) -> dict[str, str]:
    return {check["name"]: check["level"] for check in answer.json["checks"]}


def test_a_healthy_file_has_no_failure(cli: Cli, file_store: str) -> None:
    answer = cli("doctor", "--store", file_store)
    assert answer.code == 0, answer.out
    assert answer.lines[0].startswith("OK    store: sqlite:///doctor.db, namespace default, tier A")
    assert not [line for line in answer.lines if line.startswith("FAIL")]


def test_as_json_it_is_one_object(cli: Cli, file_store: str) -> None:
    answer = cli("doctor", "--store", file_store, "--json")
    assert set(answer.json) == {"ok", "checks", "repaired"}
    assert answer.json["ok"] is True
    assert {frozenset(check) for check in answer.json["checks"]} == {frozenset({"name", "level", "detail", "remedy"})}
    assert {"store", "clock skew", "writing", "nodes", "holds", "schema", "file mode"} <= set(levels(answer))


def test_a_failure_is_exit_1(cli: Cli, file_store: str, elsewhere: Path) -> None:
    os.chmod(elsewhere / "doctor.db", 0o666)
    answer = cli("doctor", "--store", file_store)
    assert answer.code == 1
    (line,) = [line for line in answer.lines if line.startswith("FAIL")]
    assert "file mode" in line
    assert "-> chmod 600" in line
    assert cli("doctor", "--store", file_store, "--json").json["ok"] is False


def test_a_missing_file_is_one_failure_and_stays_missing(cli: Cli, elsewhere: Path) -> None:
    answer = cli("doctor", "--store", "sqlite:///nothing.db")
    assert answer.code == 3
    assert answer.lines[0].startswith("FAIL  store: nothing of Solocron's is at sqlite:///nothing.db: there is no file")
    assert list(elsewhere.iterdir()) == []


def test_the_default_store_is_a_warning(cli: Cli, elsewhere: Path) -> None:
    assert levels(cli("doctor", "--json"))["default store"] == "WARN"


@pytest.mark.parametrize(
    ("mode", "container", "level"), [(0o640, False, None), (0o644, False, "WARN"), (0o444, True, None)]
)
def test_a_file_with_the_url_that_every_user_may_read_is_a_warning(
    cli: Cli,
    file_store: str,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: int,
    container: bool,
    level: str | None,
) -> None:
    """A container has one user, and its secrets are mounted so."""
    (elsewhere / "url").write_text(file_store)
    (elsewhere / "url").chmod(mode)
    monkeypatch.setenv("SOLOCRON_STORE_FILE", str(elsewhere / "url"))
    monkeypatch.setattr("solocron.surroundings.in_container", lambda: container)
    found = levels(cli("doctor", "--json"))
    assert found.get("store file") == level
    assert found.get("default store") == ("WARN" if container else None), "it was named, by its file"


def test_the_tokens_of_a_service_have_a_line_if_they_are_named(cli: Cli, file_store: str, elsewhere: Path) -> None:
    add_token(elsewhere / "tokens", "ana", Role.OPERATE)
    lines = cli("doctor", "--store", file_store, "--token-file", "tokens").lines
    assert lines[-1] == "OK    service tokens: 1 operate; the file was changed today"
    (elsewhere / "tokens").chmod(0o666)
    told = cli("doctor", "--store", file_store, "--token-file", "tokens").lines[-1]
    assert told.startswith("WARN  service tokens: no token is accepted: other users may use the token file")


def test_in_a_container_the_default_store_is_a_failure(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.surroundings.in_container", lambda: True)
    assert levels(cli("doctor", "--json"))["default store"] == "FAIL"


def test_a_lease_and_a_beat_can_be_judged(cli: Cli, shop: Shop) -> None:
    answer = cli("doctor", "--store", shop.url, "--lease", "10s", "--beat", "5s")
    assert answer.code == 1
    (line,) = [line for line in answer.lines if line.startswith("FAIL")]
    assert line == (
        "FAIL  given lease: 10 s, beat 5 s: one lost renewal would cost the session    "
        "-> raise the lease to at least 15 s"
    )
    assert cli("doctor", "--store", shop.url, "--lease", "10s").code == 0
    assert cli("doctor", "--store", shop.url, "--beat", "5s").code == 0
    assert cli("doctor", "--store", shop.url, "--lease", "soon").code == 2


def test_a_bad_url_is_a_usage_error_and_not_a_finding(cli: Cli) -> None:
    assert cli("doctor", "--store", "orcale://x").code == 2


def test_orphaned_jobs_and_stuck_holds_are_found_and_repaired(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "memory://broken-hip"
    store = make_store(url)
    put(store, session("b", now=store.clock(), handlers=()), job(held_by="a", retries=1))
    answer = cli("doctor", "--store", url, "--json")
    assert answer.code == 1
    assert (levels(answer)["orphaned jobs"], levels(answer)["holds"]) == ("FAIL", "FAIL")
    again = cli("doctor", "--repair", "--store", url, "--json")
    assert levels(again)["holds"] == "OK"
    assert again.json["repaired"] == ["freed the runs of session session of a, which does not exist; taken over: work"]
    assert again.code == 1  # no node has the handler, and no repair can change that


def test_repair_says_what_it_did_and_what_it_waits_for(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "memory://silence"
    store = make_store(url)
    put(store, session("a", left=-3600, now=store.clock()))
    monkeypatch.setattr("solocron.cli.commands.doctor.Threads", PatientRuntime)
    answer = cli("doctor", "--repair", "--store", url)
    assert "done  buried a, silent for a lease and more" in answer.lines
    assert "watching a for 15 s" in answer.err
    assert [line for line in answer.lines if "silent node: none" in line] == ["OK    silent node: none"]
    assert "there was nothing to repair" in cli("doctor", "--repair", "--store", url).err


def test_nothing_is_repaired_where_the_store_is_away(cli: Cli, elsewhere: Path) -> None:
    answer = cli("doctor", "--repair", "--store", "sqlite:///nothing.db", "--json")
    assert (answer.code, answer.json["repaired"]) == (3, [])


def test_a_running_fleet_is_left_alone_by_repair(cli: Cli) -> None:
    begun, end = threading.Event(), threading.Event()
    scheduler = Scheduler("memory://busy", node="busy")

    @scheduler.every("1h", name="long")
    def long() -> None:
        begun.set()
        assert end.wait(60)

    with scheduler:
        run = scheduler.trigger("long")
        assert begun.wait(60)
        answer = cli("doctor", "--repair", "--store", "memory://busy", "--json")
        end.set()
        assert scheduler.wait(run, 60).status == "succeeded"
    assert answer.json["repaired"] == []
    assert levels(answer)["holds"] == "OK"
