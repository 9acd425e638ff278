"""Texts that come with the package, through its loader: also found inside a zip, and read without importing anything.

`importlib.resources` brings in more modules with its first use. That would happen in a thread of a node, and a process
that is forked at that moment has a child in which those modules can never be imported: the thread that holds their
locks does not exist there.
"""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["packaged_text"]


def packaged_text(package: str, *path: str) -> str:
    """The text of a file in the folder of an imported package."""
    module: Any = sys.modules[package]
    file = os.path.join(os.path.dirname(module.__file__), *path)
    return str(module.__loader__.get_data(file).decode("utf-8")).replace("\r\n", "\n")
