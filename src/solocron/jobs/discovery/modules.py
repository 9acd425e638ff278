"""Jobs in modules and packages: whatever a module defines at its top, and the static methods of its classes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from solocron.errors import InvalidError
from solocron.jobs.decorators import declarations

__all__ = ["functions_of", "load", "walk"]


def load(name: str) -> ModuleType:
    """Import a module by its dotted name; a failure names the module and keeps the cause."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InvalidError(f"there is no module {name!r} on the import path; nothing was registered.") from error
        raise InvalidError(f"module {name!r} could not be imported: {error}; nothing was registered.") from error
    except InvalidError as error:  # says by itself what was left untouched
        raise InvalidError(f"module {name!r} could not be imported: {error}") from error
    except Exception as error:
        raise InvalidError(f"module {name!r} could not be imported: {error!r}; nothing was registered.") from error


def walk(module: ModuleType) -> Iterator[ModuleType]:
    """The module itself and, for a package, everything below it; `__main__` files are programs and left alone."""
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."):
        if not found.name.endswith(".__main__"):
            yield from walk(load(found.name))


def functions_of(module: ModuleType) -> Iterator[Any]:
    """Functions that the module itself defines and that carry a declaration; what it imported belongs elsewhere."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, type):
            yield from _static(value)
        elif declarations(value):
            yield value


def _static(cls: type) -> Iterator[Any]:
    for name, value in vars(cls).items():
        if isinstance(value, staticmethod | classmethod) and declarations(value):
            yield getattr(cls, name)
