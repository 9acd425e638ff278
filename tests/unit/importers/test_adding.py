"""A half-added job cannot start, is in the receipt, and is undone with the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solocron import Every, Scheduler
from solocron.client import Client
from solocron.errors import ConflictError, StoreUnavailable
from solocron.importers.adding import ImportResult, add_jobs, undo
from solocron.importers.entry import ImportedJob
from solocron.scheduler.hooks import core_of
from solocron.stores.paging import find_job, iter_jobs


def test_a_store_that_goes_away_before_the_pause_leaves_the_job_disabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scheduler("memory://")
    scheduler.register(lambda run: None, name="beat")
    client = core_of(scheduler).open()

    def pause(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the store is away; nothing was written.")

    job = ImportedJob(name="off", handler="beat", schedule=Every("1s"), options={}, paused=True)
    with monkeypatch.context() as away:
        away.setattr(client, "pause", pause)
        with pytest.raises(StoreUnavailable):
            list(add_jobs(client, [job], tmp_path / "receipt", "celery"))
    found = find_job(client.store, "off")
    assert found is not None
    assert not found.definition.enabled
    undone = list(undo(client, tmp_path / "receipt"))
    assert [(one.job, one.result) for one in undone] == [("off", ImportResult.REMOVED)]
    scheduler.stop()


@pytest.fixture
def client() -> Iterator[Client]:
    scheduler = Scheduler("memory://")
    scheduler.register(lambda run: None, name="beat")
    yield core_of(scheduler).open()
    scheduler.stop()


def imported(name: str, *, paused: bool = False, handler: str = "beat") -> ImportedJob:
    return ImportedJob(name=name, handler=handler, schedule=Every("1h"), options={}, paused=paused)


def undone(client: Client, receipt: Path) -> dict[str, str]:
    return {one.job: str(one.result) for one in undo(client, receipt)}


@pytest.mark.parametrize("paused", [False, True], ids=["on", "paused"])
@pytest.mark.parametrize("kept", range(4))
def test_wherever_an_import_is_cut_off_its_receipt_undoes_it(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, paused: bool
) -> None:
    """A process that is killed writes no line afterwards: the line must be there before."""
    left = iter(range(kept))
    update = client.store.update

    def cut_off(*given: Any, **more: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return update(*given, **more)

    receipt = tmp_path / "receipt"
    with monkeypatch.context() as away:
        away.setattr(client.store, "update", cut_off)
        try:
            list(add_jobs(client, [imported("one", paused=paused), imported("two")], receipt, "celery"))
        except KeyboardInterrupt:
            pass
    there = {name for name in ("one", "two") if find_job(client.store, name) is not None}
    assert there == {name for name, result in undone(client, receipt).items() if result == "removed"}
    assert all(job.removed for job in iter_jobs(client.store))


def test_undo_leaves_a_job_alone_that_another_has_added_instead(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the store is away; nothing was written.")

    with monkeypatch.context() as away:
        away.setattr(client, "add", add)
        with pytest.raises(StoreUnavailable):
            list(add_jobs(client, [imported("one")], tmp_path / "receipt", "celery"))
    client.add("one", "beat", Every("2h"))
    assert undone(client, tmp_path / "receipt") == {"one": "kept"}


def test_a_job_that_was_refused_is_not_in_the_receipt(client: Client, tmp_path: Path) -> None:
    jobs = [imported("one", handler="nothing", paused=True), imported("two")]
    results = [added.result for added in add_jobs(client, jobs, tmp_path / "receipt", "celery")]
    assert results == [ImportResult.REFUSED, ImportResult.ADDED]
    assert undone(client, tmp_path / "receipt") == {"two": "removed"}


def test_a_job_that_is_refused_half_way_is_taken_back(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(*_: Any, **__: Any) -> None:
        raise ConflictError("it cannot be paused.")

    monkeypatch.setattr(client, "pause", pause)
    (added,) = add_jobs(client, [imported("one", paused=True)], tmp_path / "receipt", "celery")
    assert (added.result, added.why) == (ImportResult.REFUSED, "it cannot be paused.")
    assert find_job(client.store, "one") is None
    assert undone(client, tmp_path / "receipt") == {}
