"""The machine's own `replace` says what the standard library's says, and refuses what it does not know."""

from __future__ import annotations

import dataclasses

import pytest

from solocron.model._fast.values import build, fast_init, replace
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job, Last
from solocron.model.documents.run import Status

JOB = Job(name="j", incarnation=1, definition=Definition(handler="h", schedule=None), cursor=5, extra={"new": 1})


def test_it_equals_the_one_of_the_standard_library() -> None:
    changes = {"cursor": 7, "nominal": "2027-01-01T00:00:00", "fence": 3, "accepted": (1, 2)}
    assert replace(JOB, **changes) == dataclasses.replace(JOB, **changes)
    assert replace(JOB) == JOB


def test_the_old_value_stays_as_it_was() -> None:
    new = replace(JOB, cursor=9)
    assert (JOB.cursor, new.cursor) == (5, 9)
    assert new.definition is JOB.definition
    with pytest.raises(dataclasses.FrozenInstanceError):
        new.cursor = 10  # type: ignore[misc]


def test_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KeyError):
        replace(JOB, status=Status.LOST)  # type: ignore[call-arg]


def test_a_class_whose_constructor_does_more_is_refused() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Checked:
        size: int

        def __post_init__(self) -> None:
            assert self.size > 0

    with pytest.raises(AssertionError, match="more than keep"):
        replace(Checked(1), size=-1)


def test_a_built_value_is_the_one_that_the_class_makes() -> None:
    built = build(Last, run="r", slot=1, attempt=1, status=Status.LOST, finished_at=2)
    assert built == Last(run="r", slot=1, attempt=1, status=Status.LOST, finished_at=2)
    assert (built.error, built.node) == (None, None)
    assert hash(built) == hash(replace(built))
    with pytest.raises(dataclasses.FrozenInstanceError):
        built.slot = 2  # type: ignore[misc]


def test_a_quick_class_makes_what_the_standard_library_makes() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Plain:
        name: str
        size: int = 3
        parts: dict[str, int] = dataclasses.field(default_factory=dict)

    faster = fast_init(type("Plain", (Plain,), {}))
    made, plain = faster(name="a"), Plain(name="a")
    assert dataclasses.astuple(made) == dataclasses.astuple(plain) == ("a", 3, {})
    assert made.parts is not faster(name="a").parts
    assert faster(name="a") == made != faster(name="a", size=4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.size = 5


def test_a_class_with_slots_cannot_be_quick() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Slotted:
        size: int

    with pytest.raises(AssertionError, match="dictionary"):
        fast_init(Slotted)
