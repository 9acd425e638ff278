"""Find a function by module and name in another process, without pickling anything."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NoReturn

from solocron.errors import InvalidError

__all__ = ["FunctionAddress", "address_of", "find", "read_address"]

_MAIN = "__solocron_main__"
"""Module name under which a program's own file is loaded again: `if __name__ == "__main__":` stays false there."""


@dataclass(frozen=True, slots=True)
class FunctionAddress:
    """The place of a function: `name` inside the module `module`, or inside the program's own file."""

    module: str
    name: str
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def address_of(function: Callable[..., Any], what: str) -> FunctionAddress:
    """Return the function's address; refuse one that another process could not find, or would find in another state."""
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__qualname__", None)
    module = getattr(function, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str) or not inspect.isroutine(function):
        _refuse(what, f"is an object of type {type(function).__name__}, not a function")
    if owner is not None and not isinstance(owner, type) and not inspect.isbuiltin(function):
        _refuse(what, "is a method of an object, and the object lives in this process only")
    if name.endswith("<lambda>"):
        _refuse(what, "is a lambda")
    if "<locals>" in name:
        _refuse(what, "is made inside another function")
    if module != "__main__":
        return FunctionAddress(module, name)
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return FunctionAddress(spec.name, name)
    file = getattr(main, "__file__", None)
    if file is None or not Path(file).is_file():
        _refuse(what, "was typed into an interpreter")
    return FunctionAddress("__main__", name, str(Path(file).resolve()))


def read_address(place: str, what: str) -> FunctionAddress:
    """Read `module:function`; the module is not imported."""
    module, colon, name = place.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise InvalidError(f'{what} must name a function as "module:function", not {place!r:.80}. Nothing was changed.')
    return FunctionAddress(module, name)


def find(address: FunctionAddress) -> Any:
    """Import the module of an address and return the function; errors of the import pass through."""
    found: Any = _program(address.file) if address.file is not None else import_module(address.module)
    for part in address.name.split("."):
        found = getattr(found, part)
    return found


def _program(file: str) -> Any:
    """Load the program's own file under a name of ours, once."""
    known = sys.modules.get(_MAIN)
    if known is not None:
        return known
    spec = spec_from_file_location(_MAIN, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[_MAIN] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refuse(what: str, why: str) -> NoReturn:
    raise InvalidError(
        f"{what} {why}, so a process of its own could not find it. Nothing was registered or started; make it a "
        "function at the top of a module, and pass what it needs as payload."
    )
