"""The wheel that users get holds the whole package, its data files too, and asks for two small ones."""

from __future__ import annotations

import http.client
import importlib
import json
import signal
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from solocron.cli.completion import FILES, script
from solocron.cli.parser import build

ROOT = Path(__file__).resolve().parents[2]


WEB = ("cronsim", "tzdata", "jinja2", "markupsafe", "uvicorn", "h11", "click")
"""Packages of `solocron[web]`, all of them."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


def test_every_file_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    """SQL, Lua, py.typed: what a build back-end leaves out is missed only at the user's."""
    source = ROOT / "src"
    files = {str(file.relative_to(source)) for file in (source / "solocron").rglob("*") if file.is_file()}
    wanted = {name for name in files if "__pycache__" not in name}
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name and ".data/" not in name}
    assert packed == wanted
    assert "solocron/py.typed" in packed


def test_the_completion_files_are_where_the_shells_look_for_them(wheel: zipfile.ZipFile) -> None:
    packed = {name.partition(".data/data/")[2]: name for name in wheel.namelist() if ".data/" in name}
    assert packed.keys() == set(FILES.values())
    for shell, place in FILES.items():
        assert wheel.read(packed[place]).decode() == script(shell, build())


def test_the_wheel_asks_for_two_small_packages_and_offers_the_rest(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = HeaderParser().parsestr(wheel.read(name).decode())
    mandatory = {asked for asked in metadata.get_all("Requires-Dist", []) if "extra ==" not in asked}
    assert {asked.partition("<")[0].partition(">")[0] for asked in mandatory} == {"cronsim", "tzdata"}
    assert {"postgres", "mysql", "redis", "cli"} <= set(metadata.get_all("Provides-Extra", []))
    assert metadata["License-Expression"] == "Apache-2.0"


def test_an_installation_with_the_extra_serves_a_new_store(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """The wheel and the packages of the extra, and nothing else of this environment."""
    site = tmp_path / "site"
    wheel.extractall(site)
    for name in WEB:
        (site / name).symlink_to(Path(str(importlib.import_module(name).__file__)).parent)
    argv = [sys.executable, "-S", "-m", "solocron", "serve", "--store", "sqlite:///jobs.db", "--port", "0", "--open"]
    environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        argv, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None
        url, link = (urlsplit(served.stdout.readline().strip()) for _ in range(2))
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=30)
        connection.request("GET", f"{link.path}?{link.query}")
        answer = connection.getresponse()
        answer.read()
        cookie = (answer.headers["Set-Cookie"] or "").partition(";")[0]
        found = {}
        for path in ("/", "/jobs", "/explain", "/api/v1/me"):
            connection.request("GET", path, headers={"Cookie": cookie, "Accept": "text/html, */*"})
            shown = connection.getresponse()
            found[path] = (shown.status, shown.read())
        connection.close()
        served.send_signal(signal.SIGTERM)
        _, log = served.communicate(timeout=30)
    assert {path: status for path, (status, _) in found.items()} == dict.fromkeys(found, 200), log
    assert b"<!doctype html" in found["/"][1].lower()
    assert served.returncode == 0
    assert not (tmp_path / "jobs.db").exists(), "looking makes nothing"


def test_the_proof_stays_out_of_the_wheel(wheel: zipfile.ZipFile) -> None:
    """Campaigns, judges and mutants are for this project; users get the simulated cluster."""
    rooms = {name.split("/")[0] for name in wheel.namelist()}
    assert {room for room in rooms if "-" not in room} == {"solocron"}
    text = b"".join(wheel.read(name) for name in wheel.namelist() if name.endswith(".py"))
    assert b"from proof" not in text
    assert b"import proof" not in text


@pytest.mark.long
def test_the_demo_works_where_nothing_but_the_wheel_is_installed(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    site = tmp_path / "site"
    wheel.extractall(site)
    for name in ("cronsim", "tzdata"):
        (site / name).symlink_to(Path(str(importlib.import_module(name).__file__)).parent)
    argv = [sys.executable, "-S", "-m", "solocron", "demo", "--seconds", "5", "--replicas", "3", "--json"]
    environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "PYTHONNOUSERSITE": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert 0 < verdict["slots"] == verdict["once"]
    assert (verdict["twice"], verdict["lost"]) == (0, 0)
