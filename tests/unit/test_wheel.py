"""The wheel that users get holds the whole package, its data files too, and asks for two small ones."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from solocron.cli.completion import FILES, script
from solocron.cli.parser import build

ROOT = Path(__file__).resolve().parents[2]


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
