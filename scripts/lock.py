"""Writes requirements/dev.txt: every package of the dev extra with its version and hashes, and no host.

Versions that are already locked stay as they are; `--upgrade` takes the newest of everything, and
`--upgrade-package NAME` of one. The resolver lives in an environment of its own that is thrown away.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "dev.txt"
RESOLVER = "pip-tools==7.6.2"
HEADER = """\
# What .venv is built from: names, versions and hashes of every platform's files. Made by `make lock`; do not edit.
"""


def wanted(project: dict[str, Any], extra: str) -> list[str]:
    """The requirements of the project and one extra, with its references to our own extras resolved."""
    asked: list[str] = []
    for requirement in project["optional-dependencies"][extra]:
        own = re.fullmatch(rf"{project['name']}\[([\w,-]+)\]", requirement)
        if own:
            asked += [one for name in own[1].split(",") for one in project["optional-dependencies"][name]]
        else:
            asked.append(requirement)
    return sorted({*project["dependencies"], *asked})


def resolve(requirements: list[str], options: list[str]) -> str:
    """Every package that these requirements bring, pinned and hashed."""
    with tempfile.TemporaryDirectory(prefix="solocron-lock-") as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        binaries = folder / "venv" / "bin"
        subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", RESOLVER], check=True)
        (folder / "dev.in").write_text("\n".join(requirements))
        if LOCK.exists():  # the resolver keeps the versions that it finds in its output file
            (folder / "dev.txt").write_bytes(LOCK.read_bytes())
        form = ["--generate-hashes", "--strip-extras", "--allow-unsafe", "--no-annotate", "--no-header"]
        quiet = ["--no-emit-options", "--quiet"]
        command = [str(binaries / "pip-compile"), *form, *quiet, *options, "--output-file=dev.txt", "dev.in"]
        subprocess.run(command, check=True, cwd=folder)
        return (folder / "dev.txt").read_text()


def main(options: list[str]) -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = [line for line in resolve(wanted(project, "dev"), options).splitlines() if not line.startswith("#")]
    LOCK.parent.mkdir(exist_ok=True)
    LOCK.write_text(HEADER + "\n".join(locked) + "\n")
    print(f"{LOCK.relative_to(ROOT)}: {sum('==' in line for line in locked)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
