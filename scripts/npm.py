"""Fetches a package of the npm registry and unpacks it, if its file has the hash that this project expects."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path


def possible() -> bool:
    return shutil.which("npm") is not None


def install(lock: Path, folder: Path) -> bool:
    """Install the packages of a lock file, each with the hash that it names, into a folder that is not there yet."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="solocron-npm-", dir=folder.parent) as name:
        for file in ("package.json", "package-lock.json"):
            shutil.copy(lock / file, name)
        command = ["npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        done = subprocess.run(command, cwd=name, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"npm could not install {lock.name}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return False
        (Path(name) / "whole").mkdir()
        for entry in [one for one in Path(name).iterdir() if one.name != "whole"]:
            entry.rename(Path(name) / "whole" / entry.name)
        try:
            os.rename(Path(name) / "whole", folder)
        except OSError:
            return folder.exists()  # another process was quicker
    return True


def fetch(package: str, version: str, sha512: str, folder: Path) -> bool:
    """Unpack a package into a folder that is not there yet; return whether that went well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="solocron-npm-", dir=folder.parent) as name:
        done = subprocess.run(
            ["npm", "pack", "--silent", f"{package}@{version}"], cwd=name, capture_output=True, text=True, check=False
        )
        files = list(Path(name).glob("*.tgz"))
        if done.returncode != 0 or len(files) != 1:
            print(f"npm could not fetch {package}@{version}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return False
        found = base64.b64encode(hashlib.sha512(files[0].read_bytes()).digest()).decode()
        if found != sha512:
            print(f"{package}@{version} is not the file that was expected; it was not unpacked.", file=sys.stderr)
            return False
        with tarfile.open(files[0]) as tar:
            tar.extractall(Path(name) / "unpacked", filter="data")
        try:
            os.rename(Path(name) / "unpacked" / "package", folder)
        except OSError:
            return folder.exists()  # another process was quicker
    return True
