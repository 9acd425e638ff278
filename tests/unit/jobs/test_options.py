"""The options of a job are written down once; decorators, `add` and the declaration agree on them."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest

from solocron import InvalidError, Scheduler, at, cron, every
from solocron.jobs.options import DEFAULTS, ELSEWHERE, AddOptions, CronOptions, JobOptions
from solocron.model.documents.definition import Definition


def listed(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


def test_every_option_has_a_default_and_every_default_an_option() -> None:
    assert DEFAULTS.keys() == get_type_hints(CronOptions).keys()


def test_every_and_at_have_no_zone_and_add_has_nothing_that_lives_in_code() -> None:
    assert DEFAULTS.keys() - get_type_hints(JobOptions).keys() == {"tz", "dst"}
    assert DEFAULTS.keys() - get_type_hints(AddOptions).keys() == {"name", "on_retry"}


def test_an_option_that_a_store_keeps_is_a_field_of_the_definition() -> None:
    about_the_schedule = {"tz", "dst", "calendar", "on_holiday", "spread", "starts", "ends"}
    fields = inspect.signature(Definition).parameters.keys()
    assert get_type_hints(AddOptions).keys() - about_the_schedule == fields - {"handler", "schedule", "application"}


def test_help_lists_the_options_and_their_defaults() -> None:
    assert listed(cron) == DEFAULTS
    assert listed(every) == listed(at) == {name: DEFAULTS[name] for name in get_type_hints(JobOptions)}  # type: ignore[literal-required]
    shown = inspect.signature(cron).parameters["run_in"].annotation
    assert shown == "Literal['auto', 'thread', 'loop', 'process'] | str"


def test_a_misspelt_option_is_refused_with_the_right_name() -> None:
    refused = "a job has no option 'retires'; did you mean 'retries'\\? Nothing was registered"
    with pytest.raises(InvalidError, match=refused):
        cron("@daily", retires=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidError, match=refused):
        Scheduler("memory://").add("a", "b", "@daily", retires=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("retry", "retries"), ("max_retries", "retries"), ("timezone", "tz"), ("args", "payload"), ("jitter", "spread")],
)
def test_an_option_of_another_scheduler_is_refused_with_its_name_here(given: str, meant: str) -> None:
    """By its letters alone `retry` led to `on_retry`, and `timezone` to `timeout`."""
    options: Any = {given: 3}
    with pytest.raises(InvalidError, match=f"a job has no option {given!r}; did you mean {meant!r}\\?"):
        cron("@daily", **options)


def test_every_other_name_of_an_option_leads_to_one() -> None:
    assert ELSEWHERE.keys().isdisjoint(DEFAULTS)
    assert set(ELSEWHERE.values()) <= DEFAULTS.keys()


def test_a_built_in_function_is_refused_in_words() -> None:
    with pytest.raises(
        InvalidError, match="<built-in function len> cannot be marked, as a built-in; put the decorator"
    ):
        every("1h")(len)


def test_a_string_is_not_a_list_of_names() -> None:
    with pytest.raises(InvalidError, match="pools must be an iterable of names, not a string; did you mean \\('x',\\)"):
        Scheduler("memory://", pools="x")
    with pytest.raises(InvalidError, match="weekend must be an iterable of names, not a string"):
        Scheduler("memory://").calendar("c", weekend="sat")
    with pytest.raises(InvalidError, match="pools must be an iterable of names, not an int"):
        Scheduler("memory://", pools=3)  # type: ignore[arg-type]


def test_a_backoff_that_is_a_duration_is_refused_where_it_is_declared() -> None:
    """It was taken, and the node failed with an AttributeError when it registered the job."""
    with pytest.raises(InvalidError, match=r"""backoff='5s' is not a Backoff; write backoff=Backoff\(first="5s"\)\."""):
        cron("0 3 * * *", backoff="5s")  # type: ignore[arg-type]
