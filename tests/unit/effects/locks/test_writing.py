"""What a write of a small document believes: a store that went back refuses what it has forgotten."""

from __future__ import annotations

from typing import cast

import pytest

from solocron.effects.locks import writing
from solocron.effects.locks.writing import write
from solocron.model.change import Kind
from solocron.runtime import Threads
from solocron.stores.contract import Applied, Gate, Result, Store, Verdict
from solocron.stores.ward import Ward


class Renewing:
    """A node that renews its session before each question, and checks another epoch before one of them."""

    def __init__(self, checks_before: int | None = None) -> None:
        self._asked = 0
        self._checks_before = checks_before

    def gate(self) -> Gate:
        self._asked += 1
        another = self._checks_before is not None and self._asked >= self._checks_before
        return Gate(self._asked, ("open 2" if another else "open 1",))


class Refusing:
    def update(self, *_: object, **__: object) -> Applied:
        return Applied(results=(Result("n", Verdict.DECLINED),), now=1)


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
@pytest.mark.parametrize(("checks_before", "beats"), [(None, 2), (2, 1)], ids=["same epoch", "another epoch"])
def test_a_refusal_is_weighed_by_the_latest_renewal_of_its_epoch(
    monkeypatch: pytest.MonkeyPatch, checks_before: int | None, beats: int
) -> None:
    """The session was renewed between the first try and the refusal, and just that renewal was lost.

    By the count of the first try the store was as it should be, and the body was told that another node had taken over.
    """
    weighed: list[Gate] = []

    def believed(_: object, gate: Gate, __: str) -> bool:
        weighed.append(gate)
        return True

    monkeypatch.setattr(writing, "stands_open", believed)
    ward = cast(Ward, Renewing(checks_before))
    write(
        cast(Store, Refusing()), Kind.STEP, "n", lambda *_: None, runtime=Threads(), session="s", ward=ward,
        check=lambda: None,
    )  # fmt: skip
    assert weighed == [Gate(beats, ("open 1",))]
