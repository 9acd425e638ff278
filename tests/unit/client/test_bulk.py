"""Many jobs as data: in few statements, all checked before the first is written, and safe beside another process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from solocron import ConflictError, InvalidError, JobSpec, NotFoundError, Scheduler, SolocronError
from solocron.client import bulk
from solocron.testing.clock import ManualClock


def made(clock: ManualClock | None = None) -> Scheduler:
    scheduler = (clock or ManualClock()).scheduler()
    scheduler.register(lambda: None, name="send")
    return scheduler


def specs(*customers: str, hour: int = 7) -> list[JobSpec]:
    return [JobSpec(f"invoice:{one}", "send", f"0 {hour} * * *", payload={"customer": one}) for one in customers]


def names(scheduler: Scheduler) -> list[str]:
    return [job.name for job in scheduler.jobs()]


# --- add_all and remove_all ---------------------------------------------------------------------------------------


def test_jobs_are_added_together_and_what_is_there_is_left_as_it_is() -> None:
    clock = ManualClock()
    scheduler = made(clock)
    assert scheduler.add_all(specs("acme", "globex")) == ["invoice:acme", "invoice:globex"]
    defined = scheduler.get_job("invoice:acme").defined_at
    clock.advance("1h")
    assert scheduler.add_all([*specs("acme"), *specs("globex", hour=8)]) == ["invoice:globex"]
    assert scheduler.get_job("invoice:acme").defined_at == defined
    assert scheduler.get_job("invoice:globex").expression == "0 8 * * *"
    clock.advance("1d")
    assert sorted(view.job for view in scheduler.tick()) == ["invoice:acme", "invoice:globex"]


def test_jobs_are_removed_together() -> None:
    scheduler = made()
    scheduler.add_all(specs("acme", "globex", "initech"))
    assert scheduler.remove_all(["invoice:acme", "invoice:gone", "invoice:initech"]) == [
        "invoice:acme",
        "invoice:initech",
    ]
    assert names(scheduler) == ["invoice:globex"]


def test_more_jobs_than_fit_into_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH", 3)
    scheduler, many = made(), [f"c{number}" for number in range(8)]
    assert len(scheduler.add_all(specs(*many))) == 8
    assert len(scheduler.remove_all(f"invoice:{one}" for one in many)) == 8
    assert names(scheduler) == []


def test_a_thousand_jobs_take_a_handful_of_statements() -> None:
    scheduler, many = made(), [f"c{number}" for number in range(1_000)]
    before = sum(scheduler.open().store.statements.values())
    scheduler.add_all(specs(*many))
    added = sum(scheduler.open().store.statements.values())
    assert added - before < 30
    assert not scheduler.sync(specs(*many), within="invoice:").changed
    scheduler.remove_all([f"invoice:{one}" for one in many])
    assert sum(scheduler.open().store.statements.values()) - added < 60


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (JobSpec("invoice:x", "sned", "@daily"), NotFoundError, "no node has a handler 'sned'; did you mean 'send'"),
        (JobSpec("invoice:x", "send", "61 * * * *"), InvalidError, "minute"),
        (JobSpec("invoice:x", "send", "@daily", calendar="moon"), InvalidError, "moon"),
        (JobSpec("two words", "send", "@daily"), InvalidError, "name='two words' cannot be used"),
        (JobSpec("invoice:acme", "send", "@daily"), InvalidError, "invoice:acme is in the list twice"),
        (JobSpec("invoice:x", "send", "@daily", limit="db:3"), ConflictError, "a limit has one number"),
        (("invoice:x", "send", "@daily"), InvalidError, "is not a JobSpec; write JobSpec"),
    ],
)
def test_one_wrong_job_leaves_all_of_them_as_they_are(wrong: Any, error: type[Exception], message: str) -> None:
    scheduler = made()
    scheduler.add("other", "send", "@daily", limit="db:2")
    for call in (scheduler.add_all, lambda jobs: scheduler.sync(jobs, within="invoice:")):
        with pytest.raises((error, LookupError), match=message):
            call([*specs("acme"), wrong])
        assert names(scheduler) == ["other"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            JobSpec("invoice:x", "send", "61 * * * *"),
            r"^invoice:x: cron '61 \* \* \* \*': .* from 0 to 59\. Nothing was changed\.$",
        ),
        (
            JobSpec("invoice:x", "send", "@daily", retries=-1),
            r"^invoice:x: retries=-1: .* Nothing was registered\.$",
        ),
        (JobSpec("invoice:x", "sned", "@daily"), r"^invoice:x: no node has a handler 'sned'; .* Nothing was added\.$"),
        (JobSpec("invoice:x", "send", "@daily", limit="db:3"), r"^invoice:x says limit='db:3' and "),
    ],
)
def test_of_a_list_the_job_that_is_wrong_is_named_once(wrong: JobSpec, message: str) -> None:
    """Among the rows of a thousand customers one is wrong: which one?"""
    scheduler = made()
    scheduler.add("other", "send", "@daily", limit="db:2")
    for call in (scheduler.add_all, lambda jobs: scheduler.sync(jobs, within="invoice:")):
        with pytest.raises(SolocronError, match=message):
            call([*specs("acme"), wrong])


def test_what_code_declares_is_refused_by_name_and_nothing_is_written() -> None:
    scheduler = made()
    scheduler.every("1h", name="invoice:code")(lambda: None)
    scheduler.tick()
    with pytest.raises(ConflictError, match="invoice:code is declared in code, so nothing was changed"):
        scheduler.add_all([*specs("acme"), JobSpec("invoice:code", "send", "@daily")])
    with scheduler:
        scheduler.add_all(specs("acme"))
        with pytest.raises(
            ConflictError, match="invoice:code is declared in code that runs now, so nothing was removed"
        ):
            scheduler.remove_all(["invoice:acme", "invoice:code"])
    assert names(scheduler) == ["invoice:acme", "invoice:code"]


def test_names_must_be_names() -> None:
    with pytest.raises(InvalidError, match="names must be an iterable of names, not a string"):
        made().remove_all("invoice:acme")


# --- sync ----------------------------------------------------------------------------------------------------------


def test_the_store_becomes_equal_to_the_list() -> None:
    scheduler = made()
    scheduler.sync(specs("acme", "globex", "initech"), within="invoice:")
    scheduler.add("report:acme", "send", "@daily")
    done = scheduler.sync([*specs("acme", "umbrella"), *specs("globex", hour=8)], within="invoice:")
    assert (done.added, done.changed, done.removed, done.same, done.left, done.applied) == (
        ("invoice:umbrella",), {"invoice:globex": ("schedule",)}, ("invoice:initech",), 1, (), True,
    )  # fmt: skip
    assert names(scheduler) == ["invoice:acme", "invoice:globex", "invoice:umbrella", "report:acme"]
    again = scheduler.sync([*specs("acme", "umbrella"), *specs("globex", hour=8)], within="invoice:")
    assert (again.added, again.changed, again.removed, again.same) == ((), {}, (), 3)


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    scheduler = made()
    scheduler.sync(specs("acme", "globex"), within="invoice:")
    before = scheduler.jobs()
    planned = scheduler.sync(specs("globex", "umbrella", hour=9), within="invoice:", dry_run=True)
    assert scheduler.jobs() == before
    done = scheduler.sync(specs("globex", "umbrella", hour=9), within="invoice:")
    assert (planned.added, planned.changed, planned.removed, planned.same) == (
        done.added, done.changed, done.removed, done.same,
    )  # fmt: skip
    assert (planned.applied, done.applied) == (False, True)


def test_an_empty_list_removes_what_was_added_and_nothing_that_code_declares() -> None:
    scheduler = made()
    scheduler.every("1h", name="invoice:code")(lambda: None)
    scheduler.tick()
    scheduler.sync(specs("acme"), within="invoice:")
    assert scheduler.sync([], within="invoice:").removed == ("invoice:acme",)
    assert names(scheduler) == ["invoice:code"]


def test_what_was_read_back_is_the_same() -> None:
    scheduler = made()
    scheduler.calendar("fr", holidays=[date(2027, 5, 1)])
    scheduler.sync(
        [JobSpec("invoice:a", "send", "H 7 * * *", calendar="fr", spread="5m", tz="Asia/Tokyo")], within="invoice:"
    )
    done = scheduler.sync([job.job_spec() for job in scheduler.jobs()], within="invoice:")
    assert (done.same, done.changed) == (1, {})


@pytest.mark.parametrize("within", ["", None, 3])
def test_a_sync_of_everything_is_refused(within: Any) -> None:
    scheduler = made()
    scheduler.add("other", "send", "@daily")
    with pytest.raises(InvalidError, match="give the beginning of the names that the list is about"):
        scheduler.sync([], within=within)
    assert names(scheduler) == ["other"]


def test_a_name_outside_of_the_prefix_is_refused() -> None:
    scheduler = made()
    with pytest.raises(InvalidError, match="report:acme is not below 'invoice:', so the next sync would not find it"):
        scheduler.sync([*specs("acme"), JobSpec("report:acme", "send", "@daily")], within="invoice:")
    assert names(scheduler) == []


def between(scheduler: Scheduler, what: Callable[[], object]) -> None:
    """Let something happen after the next sync has compared, before it writes."""
    store = scheduler.open().store
    real = store.update

    def update(*given: Any, **options: Any) -> Any:
        store.update = real  # type: ignore[method-assign]
        what()
        return real(*given, **options)

    store.update = update  # type: ignore[method-assign]


def test_a_job_that_another_process_has_changed_meanwhile_is_not_removed() -> None:
    clock = ManualClock()
    ours, theirs = made(clock), made(clock)
    ours.sync(specs("acme", "globex"), within="invoice:")
    between(ours, lambda: theirs.add_all(specs("globex", hour=9)))
    done = ours.sync(specs("acme"), within="invoice:")
    assert (done.removed, done.left) == ((), ("invoice:globex",))
    assert ours.get_job("invoice:globex").expression == "0 9 * * *"


def test_a_job_that_code_has_declared_meanwhile_is_left_and_said() -> None:
    clock = ManualClock()
    ours, theirs = made(clock), made(clock)
    theirs.every("1h", name="invoice:acme")(lambda: None)
    between(ours, theirs.tick)
    with pytest.raises(ConflictError, match="invoice:acme is declared in code since a moment, and was left"):
        ours.sync(specs("acme", "globex"), within="invoice:")
    assert ours.get_job("invoice:acme").declared
    assert ours.get_job("invoice:globex").expression == "0 7 * * *"


def test_processes_that_sync_the_same_list_at_once_end_with_that_list() -> None:
    clock, errors = ManualClock(), list[BaseException]()
    first = made(clock)
    first.sync(specs(*(f"old{number}" for number in range(20))), within="invoice:")
    wanted = specs(*(f"new{number}" for number in range(20)), "old3")
    start = threading.Barrier(4)

    def one() -> None:
        try:
            scheduler = made(clock)
            start.wait(30)
            scheduler.sync(wanted, within="invoice:")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert names(first) == sorted(spec.name for spec in wanted)
