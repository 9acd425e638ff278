"""No verb of the store without a caller: each one costs every author of a store."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import solocron
from solocron.stores.contract import Store
from solocron.stores.kernel import PlainStore, StoreKernel

PACKAGE = Path(solocron.__file__).parent
FOR_TESTS = {"statements", "shift_clock"}
"""They say so themselves."""


def verbs(*classes: type) -> set[str]:
    return {name for cls in classes for name in vars(cls) if not name.startswith("_")}


def asked(files: Iterator[Path], receivers: tuple[str, ...]) -> set[str]:
    """Return the attributes that code asks of an object with such a name."""
    return {
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).removesuffix("()").endswith(receivers)
    }


def test_every_verb_of_a_store_has_a_caller_outside_the_stores() -> None:
    callers = (
        file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).parts[0] not in ("stores", "testing")
    )
    assert verbs(Store) - asked(callers, ("store",)) == FOR_TESTS


def test_every_verb_that_a_plain_store_supplies_has_a_caller_in_the_kernel() -> None:
    supplied = {name for cls in (StoreKernel, PlainStore) for name in cls.__abstractmethods__}
    kernel = (PACKAGE / "stores" / name for name in ("kernel.py", "update.py"))
    assert supplied - asked(kernel, ("self", "_store", "store")) - verbs(Store) == set()


def test_a_plain_store_supplies_what_its_page_lists() -> None:
    """The table of verbs, and the class below it."""
    page = (PACKAGE.parents[1] / "docs" / "how-to" / "write-a-store.md").read_text(encoding="utf-8")
    table = page.split("\n## ")[0]
    wanted = PlainStore.__abstractmethods__ | {name for name in verbs(Store) if not hasattr(PlainStore, name)}
    assert {name for name in wanted if f"`{name}" not in table} == set()
