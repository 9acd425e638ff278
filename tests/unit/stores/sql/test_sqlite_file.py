"""Where a SQLite store may lie, and how its file is made."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from solocron.errors import InvalidError, StoreRefused
from solocron.stores.sql.sqlite import file
from solocron.stores.sql.sqlite.file import filesystem_of, place_of
from solocron.stores.url import make_store, parse


def refused(path: Path) -> str:
    store = make_store(f"sqlite:///{path}")
    with pytest.raises(StoreRefused) as caught:
        store.open()
    store.close()
    assert "nothing was written" in str(caught.value)
    return str(caught.value)


def test_three_slashes_are_relative_and_four_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_of(parse("sqlite:///a.db")).path == tmp_path / "a.db"
    assert place_of(parse("sqlite:///./sub/../a%20b.db")).path == tmp_path / "a b.db"
    assert place_of(parse("sqlite:////var/a.db")).path == Path("/var/a.db")


def test_a_later_chdir_does_not_change_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = place_of(parse("sqlite:///a.db"))
    monkeypatch.chdir("/")
    assert place.path == tmp_path / "a.db"


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://a.db", "sqlite://host/a.db", "sqlite:///a/"])
def test_a_url_without_a_file_is_refused(url: str) -> None:
    with pytest.raises(InvalidError, match="othing was opened"):
        make_store(url)


def test_every_file_of_a_new_store_is_ours_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = make_store(f"sqlite:///{tmp_path}/a.db")
        store.open()
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(old)
    assert files.keys() == {"a.db", "a.db-wal", "a.db-shm", "a.db-turns"}
    assert set(files.values()) == {0o600}


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real.db").touch()
    (tmp_path / "a.db").symlink_to(tmp_path / "real.db")
    assert "symbolic link" in refused(tmp_path / "a.db")
    assert (tmp_path / "real.db").read_bytes() == b""


def test_a_folder_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert "chmod o-w" in refused(tmp_path / "a.db")
    assert list(tmp_path.iterdir()) == []


def test_a_sticky_folder_will_do_for_a_file_of_our_own(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    store = make_store(f"sqlite:///{tmp_path}/a.db")
    store.open()
    store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file that belongs to another user")
def test_somebody_elses_file_in_a_sticky_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "a.db").touch()
    os.chown(tmp_path / "a.db", 12345, 12345)
    assert "belongs to another user" in refused(tmp_path / "a.db")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "missing") in refused(tmp_path / "missing" / "a.db")


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").mkdir()
    assert "a.db is not a file; nothing was written" in refused(tmp_path / "a.db")


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "9p", "fuse.sshfs", "ceph"])
def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(file, "filesystem_of", lambda folder: kind)
    assert f"network file system ({kind})" in refused(tmp_path / "a.db")
    assert list(tmp_path.iterdir()) == []


def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = f"""\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw
23 22 0:5 / {tmp_path} rw shared:2 - tmpfs tmpfs rw
24 22 0:6 / {tmp_path}/with\\040blank rw shared:3 - nfs4 server:/export rw
25 22 0:7 / {tmp_path}/twice rw - ext4 /dev/sdb rw
26 22 0:8 / {tmp_path}/twice rw - cifs //host/share rw
broken line
"""
    blank = tmp_path / "with blank" / "sub"
    blank.mkdir(parents=True)
    assert filesystem_of(blank, mounts) == "nfs4"
    assert filesystem_of(tmp_path / "twice", mounts) == "cifs"
    assert filesystem_of(tmp_path / "with", mounts) == "tmpfs"
    assert filesystem_of(Path("/"), mounts) == "ext4"
    link = tmp_path / "link"
    link.symlink_to(blank)
    assert filesystem_of(link, mounts) == "nfs4"


def test_this_machines_own_mounts_can_be_read(tmp_path: Path) -> None:
    assert filesystem_of(tmp_path) not in ("", "nfs")
