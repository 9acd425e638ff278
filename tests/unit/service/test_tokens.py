"""Tokens: shown once, kept as a hash, in a file that other users cannot use."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from solocron.errors import ConfigurationError, ConflictError
from solocron.service.identity import LOGIN_LASTS, cookie_name, identify, make_login, set_cookie
from solocron.service.request import RequestHead
from solocron.service.roles import Identity, Role
from solocron.service.tokens import FixedTokens, TokenEntry, TokenFile, add_token, hash_of, new_token

SECOND = 1_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def test_a_token_is_kept_as_its_hash_in_a_file_of_its_owner(file: Path) -> None:
    token = add_token(file, "ana", Role.OPERATE)
    assert re.fullmatch(r"solocron_[A-Za-z0-9_-]{43}", token)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == f"ana operate {hash_of(token)}\n"
    assert TokenFile(file).identify(token) == Identity("ana", Role.OPERATE)
    assert TokenFile(file).identify(new_token()) is None


def test_a_token_may_be_bound_to_namespaces(file: Path) -> None:
    token = add_token(file, "ana", Role.READ, ["mail", "billing"])
    assert file.read_text() == f"ana read {hash_of(token)} billing,mail\n"
    assert TokenFile(file).identify(token) == Identity("ana", Role.READ, frozenset(["billing", "mail"]))
    with pytest.raises(ConfigurationError, match=r"'a,b' is not a name.*No token was made"):
        add_token(file, "bot", Role.READ, ["a,b"])
    file.write_text(f"ana read {hash_of(token)} mail,\n")
    with pytest.raises(ConfigurationError, match="line 1, cannot be read"):
        TokenFile(file).entries()


def test_a_second_one_is_appended_also_to_a_file_without_a_line_break_at_its_end(file: Path) -> None:
    first = add_token(file, "ana", Role.READ)
    file.write_text(file.read_text().rstrip("\n"))
    second = add_token(file, "bot", Role.TICK)
    tokens = TokenFile(file)
    assert (tokens.identify(first), tokens.identify(second)) == (Identity("ana"), Identity("bot", Role.TICK))


def test_a_name_that_is_there_is_refused(file: Path) -> None:
    add_token(file, "ana", Role.READ)
    before = file.read_text()
    with pytest.raises(ConflictError, match="No token was made"):
        add_token(file, "ana", Role.OPERATE)
    assert file.read_text() == before


@pytest.mark.parametrize("name", ["", "a b", "a\nb operate " + "0" * 64, "x" * 129])
def test_a_name_that_could_forge_a_line_is_refused(file: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="No token was made"):
        add_token(file, name, Role.READ)
    assert not file.exists()


def test_a_token_that_is_taken_out_ends_at_once(file: Path) -> None:
    token = add_token(file, "ana", Role.READ)
    tokens = TokenFile(file)
    assert tokens.identify(token) is not None
    file.write_text("# none\n")
    assert tokens.identify(token) is None


def test_a_file_that_cannot_be_trusted_any_more_lets_no_caller_in(file: Path) -> None:
    token = add_token(file, "ana", Role.READ)
    tokens = TokenFile(file)
    assert tokens.identify(token) is not None
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 640"):
        tokens.identify(token)
    file.chmod(0o600)
    assert tokens.identify(token) is not None
    file.unlink()
    with pytest.raises(ConfigurationError, match="cannot be used"):
        tokens.identify(token)


def test_a_secret_that_an_orchestrator_mounts_is_read_and_read_again_when_it_is_replaced(tmp_path: Path) -> None:
    """A Kubernetes Secret: a link to a link to a folder that is swapped, readable by the group of the container."""
    secrets = {}
    for version in ("..v1", "..v2"):
        (tmp_path / version).mkdir()
        secrets[version] = add_token(tmp_path / version / "tokens", "ana", Role.READ)
        (tmp_path / version / "tokens").chmod(0o440)
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "tokens").symlink_to("..data/tokens")
    tokens = TokenFile(tmp_path / "tokens")
    assert tokens.identify(secrets["..v1"]) == Identity("ana")
    (tmp_path / "..new").symlink_to("..v2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert tokens.identify(secrets["..v1"]) is None
    assert tokens.identify(secrets["..v2"]) == Identity("ana")


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602, 0o620, 0o660])
def test_a_file_that_others_may_read_or_a_group_may_write_is_refused_in_one_sentence(file: Path, mode: int) -> None:
    add_token(file, "ana", Role.READ)
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match="other users may use") as caught:
        TokenFile(file).entries()
    assert f"chmod 640 {file}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("folder", ["of the link", "of the file"])
def test_an_open_folder_is_refused_also_behind_a_link(tmp_path: Path, folder: str) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    add_token(there / "tokens", "ana", Role.READ)
    (here / "tokens").symlink_to(there / "tokens")
    (here if folder == "of the link" else there).chmod(0o777)
    with pytest.raises(ConfigurationError, match="chmod o-w"):
        TokenFile(here / "tokens").entries()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_or_link_of_another_user_is_refused(tmp_path: Path) -> None:
    add_token(tmp_path / "tokens", "ana", Role.READ)
    (tmp_path / "link").symlink_to("tokens")
    os.chown(tmp_path / "link", 65_534, -1, follow_symlinks=False)
    with pytest.raises(ConfigurationError, match="a link of another user"):
        TokenFile(tmp_path / "link").entries()
    with pytest.raises(ConfigurationError, match="a link of another user"):
        add_token(tmp_path / "link", "bob", Role.READ)
    os.chown(tmp_path / "tokens", 65_534, -1)
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        TokenFile(tmp_path / "tokens").entries()


@pytest.mark.parametrize(
    "line", ["ana", "ana read", "ana root " + "0" * 64, "ana read xyz", "ana read " + "0" * 63, "a/b read " + "0" * 64]
)
def test_a_line_that_cannot_be_read_is_named(file: Path, line: str) -> None:
    file.touch(mode=0o600)
    file.write_text(f"# tokens\n\n{line}\n")
    with pytest.raises(ConfigurationError, match="line 3"):
        TokenFile(file).entries()


# --- logins


def known(cookie: str, tokens: FixedTokens, *, now: int, secure: bool = False, base: str = "") -> bool:
    plain = RequestHead(id="", method="GET", path="/", secure=secure, base=base)
    headers = (("cookie", f"other=1; {cookie_name(plain)}={cookie}"),)
    head = RequestHead(id="", method="GET", path="/", secure=secure, base=base, headers=headers)
    return identify(head, tokens, now=now) is not None


def test_a_login_lasts_eight_hours_and_no_longer_than_its_token() -> None:
    token = new_token()
    tokens, now = FixedTokens(TokenEntry("ana", Role.READ, hash_of(token))), 1_000_000 * SECOND
    cookie = make_login(token, now=now)
    assert known(cookie, tokens, now=now)
    assert known(cookie, tokens, now=now - 60 * SECOND), "another replica's clock is a little ahead"
    assert not known(cookie, tokens, now=now - 62 * SECOND)
    assert known(cookie, tokens, now=now + (LOGIN_LASTS - 1) * SECOND)
    assert not known(cookie, tokens, now=now + LOGIN_LASTS * SECOND)
    assert not known(cookie, FixedTokens(), now=now)


def test_a_login_that_was_changed_anywhere_is_not_one() -> None:
    token = new_token()
    tokens, now = FixedTokens(TokenEntry("ana", Role.READ, hash_of(token))), 1_000_000 * SECOND
    cookie = make_login(token, now=now)
    for at, letter in enumerate(cookie):
        other = "A" if letter != "A" else "B"
        forged = cookie[:at] + other + cookie[at + 1 :]
        if at == len(cookie) - 1:
            forged = cookie[:-1]  # the last letter of base64 has bits that do not count
        assert not known(forged, tokens, now=now), at
    for odd in ("", ".", "v1....", cookie + ".x", "\u00e9" * 20, "v1.99999999999999." + cookie):
        assert not known(odd, tokens, now=now)


@pytest.mark.parametrize(
    ("secure", "base", "wanted"),
    [
        (True, "", "__Host-solocron=x; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict; Secure"),
        (True, "/a", "__Secure-solocron=x; Path=/a; Max-Age=28800; HttpOnly; SameSite=Strict; Secure"),
        (False, "", "solocron_local=x; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict"),
    ],
)
def test_the_cookie_cannot_be_read_by_script_or_sent_elsewhere(secure: bool, base: str, wanted: str) -> None:
    head = RequestHead(id="", method="GET", path="/", secure=secure, base=base)
    assert set_cookie(head, "x") == ("Set-Cookie", wanted)
