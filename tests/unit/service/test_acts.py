"""An act says what it will do before it does it."""

from __future__ import annotations

from datetime import timedelta

from solocron.service.pages.acts import (
    BackfillAsked,
    backfill_act,
    cancel_act,
    pause_act,
    rerun_act,
    resume_act,
    trigger_act,
)
from solocron.service.pages.render import render
from solocron.views import BackfillView, PauseView, ResumeView
from tests.unit.service import every_page as made
from tests.unit.service import world
from tests.unit.service.world import LINKS, UTC_READING, at


def test_a_pause_says_which_node_goes_on():
    job = next(job for job in world.jobs() if job.name == "invoices.generate")
    page = pause_act(job, zone="UTC", links=LINKS)
    assert page.sentences[1] == "worker-b goes on with the run that it has begun."
    assert page.action == LINKS.job("invoices.generate", "pause")


def test_a_resume_says_what_becomes_of_the_slots_and_lifts_only_the_pause_that_was_seen():
    pause = PauseView(at=at("02:10"), by="ana", note=None, until=None)
    preview = ResumeView(job="j", paused=pause, skipped=4, missed=0, first=None, last=None, waiting=1, next=at("04:15"))
    page = resume_act(preview, reading=UTC_READING, links=LINKS)
    assert page.sentences == (
        "4 slots are put on record as skipped.",
        "1 run that waited starts at once.",
        "The next slot is 04:15.",
    )
    assert [field.value for field in page.fields if field.kind == "hidden"] == [at("02:10").isoformat()]


def test_a_trigger_that_would_wait_says_why():
    orphan = next(job for job in world.jobs() if job.orphaned)
    assert "no live node of pool eu" in trigger_act(orphan, payload="{}", key="k", links=LINKS).sentences[1]


def test_a_backfill_counts_before_it_starts():
    first = at("01:00")
    preview = BackfillView(
        id=None, job="j", first=first, last=first + timedelta(hours=2), total=31, waiting=0, running=0, done=0,
        rate=6.0, asked_by=None, note=None,
    )  # fmt: skip
    asked = BackfillAsked(start="2026-11-16T01:00", end="2026-11-16T04:00", only="all")
    told = backfill_act(preview, asked, ran=28, key="k", zone="UTC", reading=UTC_READING, links=LINKS)
    assert told.sentences[0] == (
        "31 slots from 01:00 to 03:00, all; 28 of them ran already. At that rate it takes 3 m 06 s."
    )


def test_a_form_carries_the_proof_against_forgery_and_the_key_of_its_run():
    source = render(rerun_act("j", at("02:15"), key="k-17", reading=UTC_READING, links=LINKS), made.frame())
    assert '<input type="hidden" name="csrf" value="c5f1">' in source
    assert '<input type="hidden" name="key" value="k-17">' in source
    assert 'method="post"' in source


def test_a_cancel_names_the_node_that_is_asked():
    running = next(run for run in world.runs() if run.status == "running")
    page = cancel_act(running, beat_s=5.0, reading=UTC_READING, links=LINKS)
    assert page.sentences[0] == f"{running.node} is asked to stop it with its next beat, within 5 s."
