"""The application of a function: equal however its program is started, and wherever it moves inside it."""

from __future__ import annotations

import importlib.machinery
import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from solocron.jobs.application import application_of


def function(module: str) -> Any:
    def body() -> None: ...

    body.__module__ = module
    return body


def run_as(monkeypatch: pytest.MonkeyPatch, *, spec: str | None = None, file: str | Path | None = None) -> str:
    """The application of a function of a program's own file."""
    main = ModuleType("__main__")
    main.__spec__ = None if spec is None else importlib.machinery.ModuleSpec(spec, None)
    if file is not None:
        main.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "__main__", main)
    return application_of(function("__main__"))


@pytest.mark.parametrize("module", ["billing", "billing.worker", "billing.deep.er"])
def test_it_is_the_top_level_package(module: str) -> None:
    assert application_of(function(module)) == "billing"


@pytest.mark.parametrize("spec", ["billing", "billing.worker", "billing.__main__"])
def test_a_module_that_was_run_has_the_name_that_it_is_imported_by(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_as(monkeypatch, spec=spec, file="anything.py") == "billing"


def test_a_file_that_was_run_has_the_name_of_its_outermost_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "billing" / "deep"
    package.mkdir(parents=True)
    assert run_as(monkeypatch, file=package / "worker.py") == "worker"
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    assert run_as(monkeypatch, file=package / "worker.py") == "billing"


@pytest.mark.parametrize("folder", ["billing", "billing.pyz"])
def test_a_folder_or_an_archive_that_was_run_has_its_name(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_as(monkeypatch, spec="__main__", file=tmp_path / folder / "__main__.py") == "billing"


def test_what_was_typed_into_an_interpreter_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_as(monkeypatch) == "__main__"


def test_a_spawned_process_is_of_the_same_application(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(monkeypatch, file="shop.py")
    assert application_of(function("__mp_main__")) == "shop"


def test_a_method_is_of_the_application_of_its_object() -> None:
    """One that is inherited from a library is not the library's."""

    class Base:
        def work(self) -> None: ...

        @classmethod
        def of_all(cls) -> None: ...

    Base.work.__module__ = Base.__module__ = "library.base"
    job = type("Job", (Base,), {"__module__": "billing.jobs", "__call__": lambda self: None})
    assert application_of(job().work) == "billing"
    assert application_of(job.of_all) == "billing"  # type: ignore[attr-defined]
    assert application_of(job()) == "billing"


def test_a_partial_is_of_the_application_of_its_function() -> None:
    assert application_of(partial(partial(function("billing.jobs")))) == "billing"
    assert application_of(json.dumps) == "json"
    assert application_of(print) == "builtins"
