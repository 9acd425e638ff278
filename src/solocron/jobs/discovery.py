"""Find declared jobs in modules, packages, functions, instances and classes; register all of them, or none."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from solocron.errors import InvalidError
from solocron.jobs.decorators import declarations
from solocron.jobs.registry import Declared, Registry

__all__ = ["Discovered", "discover", "functions_of"]


class Discovered(NamedTuple):
    """The jobs that are new, and the targets in which no job is declared at all."""

    new: list[Declared]
    empty: list[object]


def discover(registry: Registry, *targets: object, prefix: str = "") -> Discovered:
    """Register the jobs of the targets, each name behind the prefix; jobs that are known already stay as they are."""
    if not isinstance(prefix, str):
        raise InvalidError(f"prefix={prefix!r:.80} is not a string; nothing was registered.")
    found = [(target, list(_functions(target))) for target in targets]
    trial = registry.copy()
    new = []
    for function in (function for _, functions in found for function in functions):
        for declaration in declarations(function):
            declared = trial.add(function, declaration, prefix=prefix)
            if declared is not None:
                new.append(declared)
    registry.take(trial)
    return Discovered(new, [target for target, functions in found if not functions])


def _functions(target: object) -> Iterator[Any]:
    if isinstance(target, str):
        target = _load(target)
    if isinstance(target, ModuleType):
        for module in _walk(target):
            yield from functions_of(module)
    elif declarations(target):
        yield target
    else:
        yield from _methods_of(target)


# --- modules and packages --------------------------------------------------------------------------------------------


def _load(name: str) -> ModuleType:
    """Import a module by its dotted name; a failure names the module and keeps the cause."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InvalidError(f"there is no module {name!r} on the import path; nothing was registered.") from error
        raise InvalidError(f"module {name!r} could not be imported: {error}; nothing was registered.") from error
    except InvalidError as error:  # its message says already what was left untouched
        raise InvalidError(f"module {name!r} could not be imported: {error}") from error
    except Exception as error:
        raise InvalidError(f"module {name!r} could not be imported: {error!r}; nothing was registered.") from error


def _walk(module: ModuleType) -> Iterator[ModuleType]:
    """Yield the module and, for a package, everything below it, except `__main__` files: they are programs."""
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."):
        if not found.name.endswith(".__main__"):
            yield from _walk(_load(found.name))


def functions_of(module: ModuleType) -> Iterator[Any]:
    """Yield the declared functions that the module itself defines; an imported one belongs to its own module."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, type):
            for name, member in vars(value).items():
                if isinstance(member, staticmethod | classmethod) and declarations(member):
                    yield getattr(value, name)
        elif declarations(value):
            yield value


# --- instances and classes -------------------------------------------------------------------------------------------


def _methods_of(target: object) -> Iterator[Any]:
    """Yield every declared method, bound; a class offers only static and class methods."""
    cls = target if isinstance(target, type) else type(target)
    seen: set[str] = set()
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if name in seen or not declarations(value):
                continue
            seen.add(name)
            if getattr(cls, name, None) is None:  # an override with None takes the job away
                continue
            if isinstance(target, type) and not isinstance(value, staticmethod | classmethod):
                raise InvalidError(
                    f"{cls.__qualname__}.{name} needs an instance: discover({cls.__qualname__}(...)) instead of the "
                    "class. Nothing was registered."
                )
            method = getattr(target, name)
            if declarations(method):  # an override without the decorator is not the job
                yield method
