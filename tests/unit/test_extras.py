"""Extras go together: one resolution has all of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def locked() -> dict[str, str]:
    """The versions that were resolved together for development."""
    text = (ROOT / "requirements" / "dev.txt").read_text()
    return {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M)}


def test_without_extras_there_are_two_dependencies() -> None:
    assert [Requirement(one).name for one in PROJECT["dependencies"]] == ["cronsim", "tzdata"]


def test_the_readme_names_every_extra() -> None:
    install = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install")[2].partition("\n## ")[0]
    assert set(re.findall(r"\[([a-z0-9]+)\]", install)) == set(EXTRAS) - {"dev"}


def test_every_extra_can_be_installed_together_with_the_others() -> None:
    """One resolution has all of them: two extras that exclude each other could not be locked."""
    (whole,) = (Requirement(one) for one in EXTRAS["dev"] if one.startswith("solocron["))
    assert whole.extras == set(EXTRAS) - {"dev"}
    versions = locked()
    for extra in whole.extras:
        for needed in map(Requirement, EXTRAS[extra]):
            version = versions.get(canonicalize_name(needed.name))
            assert version is not None, f"{needed} of the extra {extra} is not in the lock: make lock"
            assert needed.specifier.contains(version), f"{extra}: {needed} and {version}"
