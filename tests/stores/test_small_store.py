"""The store of `docs/how-to/write-a-store.md`, exactly as it is printed there, keeps every promise of a store."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.testing.conformance import Make, StoreConformance

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-store.md"
CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]


def file_store() -> Any:
    space: dict[str, Any] = {"__name__": "file_store"}
    exec(compile(CODE, str(PAGE), "exec"), space)
    return space["FileStore"]


FileStore = file_store()


class TestFileStore(StoreConformance):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        return lambda namespace="default": FileStore(tmp_path / "jobs.json", namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        path: Path = store.path  # type: ignore[attr-defined]
        everything = json.loads(path.read_text())
        everything[store.namespace]["docs"][kind][name][2] = '{"c": 1, "broken'
        path.write_text(json.dumps(everything))
        return True


def test_it_is_a_page_long() -> None:
    assert len(CODE.splitlines()) < 150
