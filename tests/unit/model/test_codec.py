"""What a store keeps of a document is the whole document, small, and with what newer code has added."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given

from solocron.model.change import Kind, SmallDocument
from solocron.model.codec import decode, encode, encode_fixed, encode_state
from solocron.model.documents.job import Job
from solocron.model.documents.session import Life, Session
from solocron.model.policy import CatchUp
from solocron.schedules import Cron
from tests.unit.model.one_job import OneJob, definition
from tests.unit.model.samples import definitions, jobs, notes, sessions


@given(jobs())
def test_a_job_comes_back_as_it_was(job: Job) -> None:
    assert decode(Kind.JOB, job.name, *encode(job)) == job


@given(jobs())
def test_the_state_is_written_as_the_standard_library_would(job: Job) -> None:
    state = encode_state(job)
    assert state == json.dumps(json.loads(state), separators=(",", ":"), ensure_ascii=False)


@given(sessions)
def test_a_session_comes_back_as_it_was(session: Session) -> None:
    """The reason of an end is kept with its time; one without the other is no session that was ever made."""
    session = session if session.ended_at is not None else replace(session, reason=None)
    assert decode(Kind.SESSION, session.name, *encode(session)) == session


@given(notes)
def test_a_plain_document_comes_back_as_it_was(note: SmallDocument) -> None:
    assert decode(note.kind, note.name, *encode(note)) == note


@given(jobs())
def test_what_newer_code_keeps_in_the_state_survives_older_code(job: Job) -> None:
    fixed, state = encode(job)
    newer = json.dumps(json.loads(state) | {"zz": {"since": 5}, "yy": None})
    read = decode(Kind.JOB, job.name, fixed, newer)
    assert isinstance(read, Job)
    written = json.loads(encode_state(replace(read, failures=read.failures + 1)))
    assert written["zz"] == {"since": 5}
    assert written["yy"] is None


def test_fields_that_newer_code_adds_to_a_hold_do_not_disturb() -> None:
    job = OneJob("1m").at(60)
    hold = job.claims()
    fixed, state = encode(job.job)
    value = json.loads(state)
    value["a"][0] += [None] * (40 - len(value["a"][0])) + ["from the future"]
    read = decode(Kind.JOB, "work", fixed, json.dumps(value))
    assert isinstance(read, Job)
    assert read.active == (hold,)


@given(definitions())
def test_a_definition_keeps_its_fingerprint_over_the_store(written: object) -> None:
    from solocron.model.documents.definition import Definition

    assert isinstance(written, Definition)
    read = Definition.from_json(json.loads(json.dumps(written.to_json())))
    assert read == written
    assert read.fingerprint == written.fingerprint


def test_an_age_of_nothing_is_not_no_age() -> None:
    for catch_up in (CatchUp("all", None, 0), CatchUp("all", 5, 0), CatchUp("all", 5), CatchUp("all")):
        assert CatchUp.from_json(json.loads(json.dumps(catch_up.to_json()))) == catch_up


def test_a_definition_is_written_without_its_defaults() -> None:
    """So that a field added later does not change the fingerprints of all jobs."""
    assert definition(None).to_json() == {"handler": "work"}
    assert set(definition("1m", retries=2).to_json()) == {"handler", "schedule", "retries"}


def test_the_state_of_a_typical_job_is_under_a_kilobyte() -> None:
    """Running, one queued, one retry waiting, requests remembered, a nominal cursor, an error of the last run."""
    job = OneJob(Cron("*/5 * * * *", tz="Europe/Paris"), overlap="queue", retries=3, timeout=60)
    for n in range(4):
        job.at(n).trigger(f"6f1c2b9e-0000-4000-8000-{n:012d}")
        job.finish(job.claims())
    job.fail(job.at(300).claims())
    job.trigger("6f1c2b9e-0000-4000-8000-000000000004")
    job.claims("host-7f9c:1234")
    job.at(600).claim("b")
    job.pause(by="ada@example.org", note="release 1.2.3", until=9000)
    state = encode_state(job.job)
    assert (len(job.job.active), len(job.job.waiting_runs)) == (1, 2)
    assert len(state.encode()) < 1024, len(state)


def test_a_claim_leaves_the_rarely_written_part_as_it_is() -> None:
    job = OneJob("1m").at(60)
    before = encode_fixed(job.job)
    job.finish(job.claims())
    assert encode_fixed(job.job) == before


def test_the_state_of_a_long_outage_is_small_too() -> None:
    job = OneJob("1s", catch_up="all").at(10_000_000)
    job.claims()
    assert job.job.waiting > 9_000_000
    assert len(encode_state(job.job)) < 600


def test_texts_of_people_stay_readable() -> None:
    job = OneJob("1m")
    job.pause(note="größere Änderung")
    assert "größere Änderung" in encode_state(job.job)


def test_a_swept_session_is_still_read() -> None:
    session = Session(name="s", node="a", host="h", pid=1, lease=5, state=Life.SWEPT, ended_at=4, reason="x")
    assert decode(Kind.SESSION, "s", *encode(session)) == session
