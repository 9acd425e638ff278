"""What tests need of the machine. A laptop may lack it; a continuous build that lacks it would prove nothing."""

from __future__ import annotations

import importlib
import os
import shutil
from typing import Any, NoReturn

import pytest

__all__ = ["lacks", "require_module", "require_program"]


def lacks(what: str, hint: str) -> NoReturn:
    """Skip the test, or fail it where CI is set."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not installed, and CI is set: {hint}", pytrace=False)
    pytest.skip(f"{what} is not installed: {hint}")


def require_program(name: str, hint: str) -> str:
    """Return where a program is."""
    return shutil.which(name) or lacks(name, hint)


def require_module(name: str) -> Any:
    """Return a module of a package that is among the locked ones of the development environment."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        lacks(name, "make venv")
