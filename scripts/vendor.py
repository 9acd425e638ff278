"""Fetches the vendored files of the dashboard by `npm pack` and refuses what has another hash than vendor.toml says.

`--check` compares the files that are there and fetches nothing.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "src" / "solocron" / "service" / "static" / "vendor"


def wanted(folder: Path) -> list[tuple[str, str, str, str]]:
    """Return package with version, member of its archive, file name and hash, for every file."""
    listed = tomllib.loads((folder / "vendor.toml").read_text(encoding="utf-8"))["file"]
    found = []
    for one in listed:
        package = f"{one['package']}@{one['version']}"
        found.append((package, one["member"], one["file"], one["sha256"]))
        found.append((package, one["licence_member"], one["licence_file"], one["licence_sha256"]))
    return found


def problems(folder: Path) -> list[str]:
    """Return what differs between the folder and its list, a line each."""
    files = wanted(folder)
    found = [
        f"{name}: missing, or another content than vendor.toml says"
        for _, _, name, digest in files
        if not (folder / name).is_file() or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest
    ]
    known = {name for _, _, name, _ in files} | {"vendor.toml"}
    return found + [f"{path.name}: not in vendor.toml" for path in folder.iterdir() if path.name not in known]


def fetch(folder: Path) -> None:
    """Fetch every file; a file with another hash is not written."""
    for package, member, name, digest in wanted(folder):
        with tempfile.TemporaryDirectory(prefix="solocron-vendor-") as place:
            ask = ["npm", "pack", "--silent", "--pack-destination", place, package]
            subprocess.run(ask, check=True, capture_output=True, timeout=120)
            with tarfile.open(next(Path(place).glob("*.tgz"))) as archive:
                inside = archive.extractfile(member)
                content = b"" if inside is None else inside.read()
        if hashlib.sha256(content).hexdigest() != digest:
            sys.exit(f"{package}: {member} has another hash than vendor.toml says; {name} was left as it is.")
        (folder / name).write_bytes(content)


def main() -> int:
    if "--check" not in sys.argv[1:]:
        fetch(FOLDER)
    found = problems(FOLDER)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
