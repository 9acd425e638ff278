"""Jobs that were switched off where they come from cannot start between being added and being paused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solocron import Every, Scheduler
from solocron.errors import StoreUnavailable
from solocron.importers.adding import add_jobs
from solocron.importers.entry import ImportedJob
from solocron.scheduler.hooks import core_of
from solocron.stores.paging import find_job


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
    scheduler.stop()
