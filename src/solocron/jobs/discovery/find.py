"""Takes whatever a user points at and registers the jobs in it, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from solocron.jobs.decorators import declarations
from solocron.jobs.discovery.instances import methods_of
from solocron.jobs.discovery.modules import functions_of, load, walk
from solocron.jobs.registry import Declared, Registry

__all__ = ["discover"]


def discover(registry: Registry, *targets: object) -> list[Declared]:
    """Register the jobs of modules, packages, functions, instances and classes; what is already known stays known."""
    found = [function for target in targets for function in _functions(target)]
    trial = registry.copy()
    new = []
    for function in found:
        for declaration in declarations(function):
            declared = trial.add(function, declaration)
            if declared is not None:
                new.append(declared)
    registry.take(trial)
    return new


def _functions(target: object) -> Iterator[Any]:
    if isinstance(target, str):
        target = load(target)
    if isinstance(target, ModuleType):
        for module in walk(target):
            yield from functions_of(module)
    elif declarations(target):
        yield target
    else:
        yield from methods_of(target)
