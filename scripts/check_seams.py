"""Fails if the engine or the model reach past their seams, or if the package could run code from data.

The simulator runs the shipped engine on virtual time, and the model is replayed by every store: both hold only
as long as time, dice, threads and the operating system come in through `Clock`, `Runtime`, `Rng`, `Store` and
`Dispatcher`. And a store writer may choose when something runs, never what: no pickle, no eval, no shell.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "solocron"

PURE = ("engine", "lease", "model")
OUTSIDE = {
    *("time", "sched", "random", "secrets", "uuid"),
    *("threading", "_thread", "queue", "concurrent", "asyncio", "multiprocessing", "contextvars"),
    *("socket", "socketserver", "ssl", "select", "selectors", "subprocess", "signal"),
    *("os", "posix", "sys", "platform", "tempfile", "pathlib", "shutil", "io", "sqlite3", "getpass"),
}
"""Modules that the engine and the model may not import."""
CLOCKS = {"now", "utcnow", "today", "fromtimestamp"}
"""Calls of datetime and date that ask this machine for the time or for its zone."""

UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "yaml"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "commands.getoutput"}


def problems(package: Path) -> Iterator[str]:
    """Yield what is wrong in this package, one line each."""
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package)
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
        pure = inside.parts[0] in PURE
        for node in ast.walk(tree):
            for fault in _unsafe(node):
                yield f"{inside}:{_line(node)}: {fault}; the package never runs code from data"
            for fault in _outside(node) if pure else ():
                yield f"{inside}:{_line(node)}: {fault}; {inside.parts[0]}/ gets it through a seam"


def _outside(node: ast.AST) -> Iterator[str]:
    for module in _imported(node):
        if module.partition(".")[0] in OUTSIDE:
            yield f"imports {module}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS:
        owner = _dotted(node.func.value)
        # `datetime.fromtimestamp(t, zone)` is pure; without a zone it takes the machine's.
        zoned = node.func.attr == "fromtimestamp" and (len(node.args) > 1 or node.keywords)
        if owner.rpartition(".")[2] in {"datetime", "date"} and not zoned:
            yield f"calls {owner}.{node.func.attr}()"


def _unsafe(node: ast.AST) -> Iterator[str]:
    for module in _imported(node):
        if module.partition(".")[0] in UNSAFE_MODULES:
            yield f"imports {module}"
    if isinstance(node, ast.Call):
        if (name := _dotted(node.func)) in UNSAFE_CALLS:
            yield f"calls {name}()"
        for keyword in node.keywords:
            if keyword.arg == "shell" and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            ):
                yield "passes shell="


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
    return []


def _dotted(node: ast.expr) -> str:
    """`a.b.c` of a chain of names; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := _dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def main() -> int:
    found = list(problems(PACKAGE))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
