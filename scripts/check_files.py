"""Fails if a file of the project holds what belongs to one machine or one network: a path, a registry's host.

A clone elsewhere gets the same packages by name, version and hash, from the registry of its own network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Each pattern has a bracket in it, so that it does not find itself.
PATTERNS = {
    "a path of one machine": re.compile(r"/(wor[k]|far[m]|roo[t]|hom[e]/[a-z]+)/|/tm[p]/[a-z]", re.IGNORECASE),
    "a registry": re.compile(r"inde[x]-url|extra-inde[x]|find-link[s]|https?://[^\s\"')]*/(simpl[e]|package[s])/"),
}
LOCKED = re.compile(r"\"?resolve[d]\"?\s*[=:]")
"""Where a lock file says that it got a package from; in programs the word is an ordinary name."""
LOCK_FILES = {".lock", ".json", ".toml", ".txt"}


def problems(root: Path, files: list[Path]) -> Iterator[str]:
    """Yield what is wrong in these files, one line each."""
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # not text; or removed, and the index does not know it yet
        patterns = PATTERNS | ({"where a package came from": LOCKED} if file.suffix in LOCK_FILES else {})
        for number, line in enumerate(text.splitlines(), start=1):
            for what, pattern in patterns.items():
                if found := pattern.search(line):
                    yield f"{file.relative_to(root)}:{number}: {what}: {found[0]}"


def project_files(root: Path) -> list[Path]:
    """Return every file that is, or could be, committed; without git, every one outside the tools' own folders."""
    if shutil.which("git") and (root / ".git").exists():
        ask = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(ask, cwd=root, capture_output=True, text=True, check=True).stdout
        return [root / name for name in listed.split("\0") if name]
    found: list[Path] = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name == ".ci" or not name.startswith((".", "__pycache__"))]
        found += [Path(folder, name) for name in names]
    return found


def main() -> int:
    found = list(problems(ROOT, project_files(ROOT)))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
