"""The cost of counters of outcomes in a job's document: processor time and bytes of a run.

    python -m bench.spikes.counts_in_document

The other side is a copy of the package in which `Job` has an array of counters, one for each outcome up to the last
that is not zero, successes first: read with the job, raised by its finish, written with its state. Each round is a
process for each side in turn, with 20,000 lives of a run: read, claim, write, read, finish, write. The least time
of 500 lives counts, so that a busy machine disturbs little. No side asks the store for anything more: the counters are
part of a state that is written anyway.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
NOW = 1_780_000_000_000_000
LIVES, PART = 20_000, 500

PATCHES = (
    ("documents/job.py", "    failures: int = 0\n", "    failures: int = 0\n    counts: tuple[int, ...] = ()\n"),
    ("codec.py", '"a", "k", "l"))', '"a", "k", "l", "t"))'),
    ("codec.py", "    if job.failures:\n", '    if job.counts:\n        out["t"] = job.counts\n    if job.failures:\n'),
    (
        "codec.py",
        "        last=None if last is None else _last(*last),\n",
        '        last=None if last is None else _last(*last),\n        counts=tuple(get("t", ())),\n',
    ),
    (
        "transitions/finishing.py",
        "        failures=0 if good",
        "        counts=_counted(job.counts, status),\n        failures=0 if good",
    ),
    (
        "transitions/finishing.py",
        "def _without(",
        "_ORDER = (Status.SUCCEEDED, *(status for status in Status if status is not Status.SUCCEEDED))\n"
        "_PLACES = {status: place for place, status in enumerate(_ORDER)}\n\n\n"
        "def _counted(counts, status):\n"
        "    place = _PLACES[status]\n"
        "    if place == 0:\n"
        "        return (counts[0] + 1, *counts[1:]) if counts else (1,)\n"
        "    raised = [*counts, *(0,) * (place + 1 - len(counts))]\n"
        "    raised[place] += 1\n"
        "    return tuple(raised)\n\n\n"
        "def _without(",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--child", metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        sys.path.insert(0, args.child)
        print(json.dumps(_lives()))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        sides = {"present": SOURCE, "with counters": _patched(Path(folder))}
        found: dict[str, list[tuple[float, int]]] = {name: [] for name in sides}
        for _ in range(args.rounds):
            for name, place in sides.items():
                told = subprocess.check_output([sys.executable, __file__, "--child", str(place)])
                found[name].append(json.loads(told))
    for name, rounds in found.items():
        us = [one for one, _ in rounds]
        print(f"{name:14} {min(us):6.2f} us/run, median {statistics.median(us):6.2f}; state {rounds[0][1]} bytes")
    return 0


def _patched(folder: Path) -> Path:
    """Return a folder with the package, counters in its jobs."""
    shutil.copytree(SOURCE / "solocron", folder / "solocron", ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in PATCHES:
        file = folder / "solocron" / "model" / name
        text = file.read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{name} has changed: {old!r} is there {text.count(old)} times")
        file.write_text(text.replace(old, new))
    return folder


def _lives() -> tuple[float, int]:
    """Return the processor time of a run in microseconds, and the bytes of the state that its finish writes."""
    from solocron.clock import SECOND
    from solocron.model import codec
    from solocron.model.change import Kind
    from solocron.model.documents.definition import Definition
    from solocron.model.documents.job import Job
    from solocron.model.documents.run import Status
    from solocron.model.timetable import Timetable
    from solocron.model.transitions.claimant import Claimant
    from solocron.model.transitions.claiming import claim
    from solocron.model.transitions.finishing import Outcome, finish
    from solocron.schedules import Every, dump

    schedule = Every("1m")
    slots = Timetable(schedule)
    definition = Definition(handler="shop.jobs.nightly", schedule=dump(schedule))
    at = slots.after(NOW) or 0
    fixed, state = codec.encode(Job(name="nightly", incarnation=1, definition=definition, cursor=NOW, due_at=at))
    by = Claimant(session="0123456789abcdef0123456789abcdef", node="host-4711-abcd", late_for=25 * SECOND)

    def job() -> Job:
        found = codec.decode(Kind.JOB, "nightly", fixed, state)
        assert isinstance(found, Job)
        return found

    least, began = 10**12, 0
    for number in range(LIVES):
        if number % PART == 0:
            here = time.process_time_ns()
            least, began = min(least, here - began) if number else least, here
        taken = claim(job(), now=at, by=by, resolve=lambda _: slots)
        assert taken is not None
        assert taken.doc is not None
        state = codec.encode_state(taken.doc)
        hold = taken.answer
        outcome = Outcome(status=Status.SUCCEEDED, started_at=at)
        ended = finish(job(), run=hold.run, fence=hold.fence, outcome=outcome, now=at, resolve=lambda _: slots)
        assert ended is not None
        assert ended.doc is not None
        state = codec.encode_state(ended.doc)
        at = slots.after(at) or 0
    return least / PART / 1000, len(state)


if __name__ == "__main__":
    sys.exit(main())
