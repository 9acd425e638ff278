"""What a client has just written is read back without parsing, if and only if the very same texts are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron.model.change import Kind
from solocron.model.codec import decode, encode
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job, Request, WaitingRun
from solocron.model.documents.run import Origin
from solocron.stores.write_cache import _MOST, Recent

HOLD = Hold(
    run="j@1", slot=5, origin=Origin.SCHEDULE, attempt=1, tries=0, session="s", node="n", fence=9, claimed_at=6,
)  # fmt: skip
JOB = Job(name="j", incarnation=1, definition=Definition(handler="h", schedule=None), cursor=5, fence=9, active=(HOLD,))


def test_the_same_texts_give_the_same_document_once() -> None:
    recent = Recent()
    texts = encode(JOB)
    recent.put(*texts, JOB)
    assert recent.take("j", *texts) is JOB
    assert recent.take("j", *texts) is None
    assert decode(Kind.JOB, "j", *texts) == JOB


def test_what_was_written_is_recalled_once_with_what_it_is_compared_by() -> None:
    recent = Recent()
    texts = encode(JOB)
    recent.put(*texts, JOB, "7.1 5 1:s")
    assert recent.recall("j") == (*texts, JOB, "7.1 5 1:s")
    assert recent.recall("j") is None
    assert recent.take("j", *texts) is None


def test_texts_that_another_client_wrote_give_nothing() -> None:
    fixed, state = encode(JOB)
    for other in ((fixed, encode(replace(JOB, fence=10))[1]), (encode(replace(JOB, revision=2))[0], state)):
        recent = Recent()
        recent.put(fixed, state, JOB)
        assert recent.take("j", *other) is None


@pytest.mark.parametrize(
    "job",
    [
        replace(JOB, active=()),
        replace(JOB, active=(replace(HOLD, payload={"a": (1,)}),)),
        replace(JOB, waiting_runs=(WaitingRun(run="j@2", slot=7, origin=Origin.TRIGGER, ready_at=7, payload={1: 2}),)),
        replace(JOB, requests=(Request(id="r", answer="a"),)),
        replace(JOB, extra={"new": [1]}),
    ],
)
def test_what_might_come_back_differently_is_not_kept(job: Job) -> None:
    recent = Recent()
    recent.put(*encode(job), job)
    assert recent.take("j", *encode(job)) is None


def test_no_more_is_kept_than_a_node_runs_at_once() -> None:
    recent = Recent()
    for number in range(_MOST + 1):
        recent.put("f", "s", replace(JOB, name=f"j{number}"))
    assert recent.take("j0", "f", "s") is None
    assert recent.take(f"j{_MOST}", "f", "s") is not None
