"""Files that come with the package, read through its loader: also inside a zip, and without importing anything.

`importlib.resources` would be the usual way. Its first use imports more modules, and that would happen in a thread of a
node: the child of a fork at that moment could never import them, because the thread that holds their locks does not
exist there.
"""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["packaged_text"]


def packaged_text(package: str, *path: str) -> str:
    """Return the content of a text file in the folder of an imported package."""
    module: Any = sys.modules[package]
    file = os.path.join(os.path.dirname(module.__file__), *path)
    return str(module.__loader__.get_data(file).decode("utf-8")).replace("\r\n", "\n")
