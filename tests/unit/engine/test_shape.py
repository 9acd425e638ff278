"""Few wires: no service of the engine or the lease takes more than five things, or keeps more than a dozen.

Counted in the source, for every class, so that a wire that is added is seen here first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import solocron

MOST_PARAMETERS = 5
MOST_ATTRIBUTES = 12
ROOMS = ("engine", "lease")
RECORDS = {
    "Parts": "what the scheduler and the simulator hand over, taken apart at once",
    "Running": "the life of one attempt, from its claim to its outcome",
}
"""Classes that are exempt, and why."""


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    package = Path(solocron.__file__).parent
    for room in ROOMS:
        for file in sorted((package / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield f"{room}/{file.name}: {node.name}", node


def parameters(cls: ast.ClassDef) -> int:
    """How many arguments the constructor takes besides `self`."""
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs) - 1
    return 0


def attributes(cls: ast.ClassDef) -> set[str]:
    """What instances keep: fields of a dataclass, and everything that a method assigns to `self`."""
    found = {
        node.target.id for node in cls.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    for node in ast.walk(cls):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets if isinstance(node, ast.Assign | ast.AnnAssign) else ():
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self":
                    found.add(one.attr)
    return found


ALL = [pytest.param(cls, id=name) for name, cls in classes() if cls.name not in RECORDS]


@pytest.mark.parametrize("cls", ALL)
def test_a_class_takes_five_things_at_most_and_keeps_a_dozen(cls: ast.ClassDef) -> None:
    assert parameters(cls) <= MOST_PARAMETERS
    assert len(attributes(cls)) <= MOST_ATTRIBUTES, sorted(attributes(cls))


def test_every_exemption_is_needed() -> None:
    found = {cls.name: cls for _, cls in classes()}
    small = [
        name
        for name in RECORDS
        if name not in found
        or (parameters(found[name]) <= MOST_PARAMETERS and len(attributes(found[name])) <= MOST_ATTRIBUTES)
    ]
    assert small == []


def test_no_wire_is_silent() -> None:
    """A callback that is set after construction can be forgotten; one that does nothing hides that it was."""
    silent = []
    for name, cls in classes():
        for node in ast.walk(cls):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Lambda) and isinstance(value.body, ast.Constant) and value.body.value is None:
                silent.append(name)
            for default in [*node.args.defaults, *node.args.kw_defaults] if isinstance(node, ast.FunctionDef) else ():
                if isinstance(default, ast.Lambda):
                    silent.append(f"{name}.{node.name}")  # type: ignore[union-attr]
    assert silent == []
