"""Every reason for which the model refuses is an error that says what was left as it was."""

from __future__ import annotations

import pytest

from solocron.client.refusals import error_of
from solocron.errors import ConflictError, InvalidError, NotFoundError
from solocron.model.refusals import Refusal, Refused


@pytest.mark.parametrize("reason", Refused)
def test_every_refusal_has_an_error_that_names_the_job(reason: Refused) -> None:
    error = error_of(Refusal(reason, 7), "billing", undone="nothing was asked for", slot="2027-01-01", shard="eu")
    assert "billing" in str(error)
    assert isinstance(error, ConflictError | InvalidError | NotFoundError)


def test_a_refusal_says_what_was_refused_and_what_was_left() -> None:
    error = error_of(Refusal(Refused.NO_SHARD), "billing", undone="it was not triggered", shard="eu")
    assert (
        str(error)
        == "billing has no shard 'eu', so it was not triggered; `solocron show billing` lists those that it has."
    )
    error = error_of(Refusal(Refused.TOO_MANY_SLOTS, 123_456), "billing", undone="nothing was asked for")
    assert "123456 slots" in str(error)
