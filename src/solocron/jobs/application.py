"""The application of a function: the same however its program is started, and wherever the function moves inside it.

It is the top-level package or module. A program's own file, which Python calls `__main__`, gets the name that it would
be imported by, so that `python -m app.worker`, `python app/worker.py` and `solocron run app.worker` are all `app`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["application_of"]

_MAIN = ("__main__", "__mp_main__")
"""`multiprocessing` renames the first to the second in a process that it spawns."""


def application_of(function: Callable[..., Any]) -> str:
    """Return the name of the application that a function, a method or a callable object comes from."""
    while isinstance(function, partial):
        function = function.func
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        # A method that an application inherits from a library belongs to the application.
        module = (owner if isinstance(owner, type) else type(owner)).__module__
    else:
        module = getattr(function, "__module__", None) or type(function).__module__
    top = str(module).partition(".")[0]
    return sys.intern(_program() if top in _MAIN else top)


def _program() -> str:
    """Return the name of this process's program; `__main__` for code typed into an interpreter."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return str(spec.name).partition(".")[0]
    file = getattr(main, "__file__", None)
    return "__main__" if file is None else _of_file(Path(file).resolve())


def _of_file(path: Path) -> str:
    """Return the outermost package around a file; without one the file's name, or the folder's for a `__main__.py`."""
    folder, name = path.parent, path.stem
    if name == "__main__":
        name = folder.stem  # a folder, or an archive such as app.pyz
    while (folder / "__init__.py").is_file():
        folder, name = folder.parent, folder.name
    return name
