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


SILENT = {
    "client/job_documents.py: trace": "a client without tracing belongs to no trace",
    "dispatch/process/order.py: trace": "a node without tracing has no trace to pass on",
}
"""Callbacks that do nothing unless they are set, and why."""


def test_no_callback_is_silent() -> None:
    """A callback that is set after construction can be forgotten; one that does nothing hides that it was."""
    package = Path(solocron.__file__).parent
    found = {
        f"{file.relative_to(package).as_posix()}: {name}"
        for file in package.rglob("*.py")
        for name in silent_callbacks(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == SILENT.keys()


def silent_callbacks(tree: ast.AST) -> Iterator[str]:
    """Yield the names of parameters, fields and attributes that begin as a lambda which calls nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and _does_nothing(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield ast.unparse(target).removeprefix("self.")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            taken = [*node.args.posonlyargs, *node.args.args]
            pairs = [
                *zip(reversed(taken), reversed(node.args.defaults), strict=False),
                *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
            ]
            yield from (one.arg for one, default in pairs if _does_nothing(default))


def _does_nothing(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Lambda) and isinstance(value.body, ast.Constant | ast.Attribute | ast.Tuple)


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def __init__(self):\n        self.wake = lambda: None",
        "class A:\n    wake: Callable[[], int] = lambda: Delivery.DONE",
        "def f(x, *, wake=lambda who: True): ...",
    ],
)
def test_a_callback_that_does_nothing_is_found(source: str) -> None:
    assert list(silent_callbacks(ast.parse(source))) == ["wake"]
