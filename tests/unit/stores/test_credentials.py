"""A file with the URL, a command with the password: bad ones are one clear message, and nothing is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from solocron import ConfigurationError, Scheduler, StoreUnavailable
from solocron.cli import main
from solocron.stores.url import parse, url_of_environment


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SOLOCRON_STORE", "SOLOCRON_STORE_FILE", "SOLOCRON_PASSWORD_COMMAND"):
        monkeypatch.delenv(name, raising=False)


def test_the_file_names_the_store_of_a_scheduler_and_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "url").write_text(f"sqlite:///{tmp_path}/jobs.db\n")
    monkeypatch.setenv("SOLOCRON_STORE_FILE", str(tmp_path / "url"))
    assert main(["jobs"]) == 3
    assert "(from SOLOCRON_STORE_FILE)" in capsys.readouterr().err
    scheduler = Scheduler()
    scheduler.every("1000d", name="job")(lambda: None)
    with scheduler:
        assert main(["jobs"]) == 0
    assert "job " in capsys.readouterr().out
    assert (tmp_path / "jobs.db").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read (No such file or directory)"), ("", "is empty"), (b"\xff\xfe", "it is not text")],
)
def test_a_file_that_cannot_be_used_is_one_message_without_its_content(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str | bytes | None,
    said: str,
) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setenv("SOLOCRON_STORE_FILE", str(file))
    with pytest.raises(ConfigurationError, match="nothing was opened"):
        Scheduler()
    assert main(["jobs"]) == 2
    said_first = capsys.readouterr().err.splitlines()[0]
    assert said_first.startswith("solocron: SOLOCRON_STORE_FILE=")
    assert said in said_first


def test_a_file_that_every_user_may_change_is_refused_and_one_they_may_read_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Docker mounts secrets with mode 0444."""
    file = tmp_path / "url"
    file.write_text(f"sqlite:///{tmp_path}/jobs.db\n")
    monkeypatch.setenv("SOLOCRON_STORE_FILE", str(file))
    file.chmod(0o444)
    Scheduler()
    file.chmod(0o666)
    with pytest.raises(
        ConfigurationError, match=f"can be changed by every user.*nothing was opened. Run: chmod o-w {file}"
    ):
        Scheduler()
    assert main(["jobs"]) == 2
    assert "chmod o-w" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["url"]


def test_a_url_and_a_file_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOCRON_STORE", "memory://")
    monkeypatch.setenv("SOLOCRON_STORE_FILE", str(tmp_path / "url"))
    with pytest.raises(ConfigurationError, match="are both set; nothing was opened"):
        Scheduler()
    assert Scheduler("memory://").health().namespace == "default", "the code goes before both"


@pytest.mark.parametrize(
    ("command", "said"),
    [("false", "exits with 1"), ("true", "prints nothing"), ("no-such-program", "cannot be run"), ("'", "cannot be")],
)
def test_a_command_that_prints_no_password_is_one_message(
    monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    monkeypatch.setenv("SOLOCRON_PASSWORD_COMMAND", command)
    with pytest.raises(ConfigurationError, match=f"SOLOCRON_PASSWORD_COMMAND {said}.*nothing was opened"):
        Scheduler("redis://app@127.0.0.1/0")


def test_a_command_is_asked_only_where_a_user_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOCRON_PASSWORD_COMMAND", "echo s3cret word")
    for url in ("redis://127.0.0.1/0", "memory://", "sqlite:///x.db"):
        assert parse(url).password is None
    written, asked = parse("redis://app:mine@127.0.0.1/0"), parse("redis://app@127.0.0.1/0")
    assert written.password is not None
    assert asked.password is not None
    assert (written.password.reveal(), asked.password.reveal()) == ("mine", "s3cret word")
    assert asked.scrub("denied: s3cret word") == "denied: ***"
    assert "s3cret" not in f"{asked!r} {asked.password!r} {asked.password}"


def test_a_file_that_is_gone_at_a_reconnect_is_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mounted secret is replaced by removing and making it again: the node must try once more."""
    (tmp_path / "url").write_text("redis://app:one@127.0.0.1/0")
    monkeypatch.setenv("SOLOCRON_STORE_FILE", str(tmp_path / "url"))
    url = url_of_environment()
    assert url is not None
    password = parse(url).password
    assert password is not None
    (tmp_path / "url").unlink()
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        password.reveal()
    (tmp_path / "url").write_text("redis://app:two@127.0.0.1/0")
    assert password.reveal() == "two"
