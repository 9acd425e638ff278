"""The gain of msgspec: frozen values, the codec of a job and of a session, and a claim and its finish.

    pip install msgspec
    python -m bench.spikes.msgspec_codec

Each figure is the least processor time of many rounds, the two sides in turn, so that a busy machine slows both alike.

With `--as msgspec` the very code of Solocron runs on msgspec: the frozen classes of the model become structs before
anything imports them, and the codec reads and writes the state of a job with msgspec alone. What a state has that this
release does not know (`Job.extra`) is lost on that side; a real codec would have to keep it.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.metadata
import json
import platform
import subprocess
import sys
import time
import typing
from collections.abc import Callable
from typing import Any

NOW = 1_780_000_000_000_000
SIDES = ("present", "msgspec")
JOBS = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--as", dest="side", choices=SIDES)
    parser.add_argument("--rounds", type=int, default=30, help="processes of each side")
    args = parser.parse_args()
    if args.side is not None:
        print(json.dumps(_measure(args.side)))
        return 0
    best: dict[str, dict[str, float]] = {side: {} for side in SIDES}
    for _ in range(args.rounds):
        for side in SIDES:
            command = [sys.executable, "-m", "bench.spikes.msgspec_codec", "--as", side]
            for name, us in json.loads(subprocess.check_output(command)).items():
                best[side][name] = min(us, best[side].get(name, us))
    print(f"Python {platform.python_version()}, msgspec {importlib.metadata.version('msgspec')}\n")
    print("| least CPU, microseconds | present | msgspec | ratio |\n|---|---|---|---|")
    for name, us in best["present"].items():
        other = best["msgspec"][name]
        print(f"| {name} | {us:.2f} | {other:.2f} | {other / us:.2f} |")
    return 0


def _measure(side: str) -> dict[str, float]:
    if side == "msgspec":
        _become_structs()
    from solocron.model import codec

    if side == "msgspec":
        _read_and_write_with_msgspec(codec)
    from solocron.model._fast.values import replace
    from solocron.model.change import Kind
    from solocron.model.documents.definition import Definition
    from solocron.model.documents.job import Hold, Job, Last
    from solocron.model.documents.run import Origin, Status
    from solocron.model.documents.session import Session

    def hold() -> Hold:
        return Hold(
            run="nightly-report@0123456789abcdef", slot=NOW, origin=Origin.SCHEDULE, attempt=1, tries=0,
            session="s-0123456789abcdef", node="host-1", fence=NOW // 1000, claimed_at=NOW, deadline=NOW + 60_000_000,
        )  # fmt: skip

    last = Last(
        run="nightly-report@0123456789abcdef", slot=NOW, attempt=1, status=Status.SUCCEEDED, finished_at=NOW,
        node="host-1",
    )  # fmt: skip
    job = Job(
        name="nightly-report", incarnation=NOW, definition=Definition(handler="h", schedule=None), cursor=NOW,
        nominal="2026-05-29T02:26:40", due_at=NOW, fence=NOW // 1000, accepted=(1, 2, 3, 4), last=last,
    )  # fmt: skip
    held = replace(job, active=(hold(),))
    session = Session(
        name="s-0123456789abcdef", node="host-1", host="host-1", pid=4711, handlers=("a", "b", "c"),
        applications=(("app", None),), version="0.1.0", fingerprint="0123456789abcdef", lease=15_000_000,
        started_at=NOW, expires_at=NOW, beats=77,
    )  # fmt: skip
    texts, kept = codec.encode(held), codec.encode(session)
    assert codec.decode(Kind.JOB, job.name, *texts) == held
    assert codec.decode(Kind.SESSION, session.name, *kept) == session
    return {
        "make a hold (10 fields)": _least(hold),
        "change 5 of 22 fields of a job": _least(
            lambda: replace(job, cursor=1, nominal="x", active=(), fence=2, due_at=3)
        ),
        "write the state of a job": _least(lambda: codec.encode_state(held)),
        "read a job": _least(lambda: codec.decode(Kind.JOB, job.name, *texts)),
        "write a session": _least(lambda: codec.encode(session)),
        "read a session": _least(lambda: codec.decode(Kind.SESSION, session.name, *kept)),
        "claim and finish, pure": _claim_and_finish(),
        "claim and finish, memory store": _on_the_memory_store(),
    }


def _least(call: Callable[[], object], times: int = 300, rounds: int = 30) -> float:
    """The least processor time of a call, in microseconds."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time_ns()
        for _ in range(times):
            call()
        best = min(best, time.process_time_ns() - began)
    return best / times / 1000


def _claim_and_finish() -> float:
    from solocron.clock import SECOND
    from solocron.model.documents.definition import Definition
    from solocron.model.documents.job import Job
    from solocron.model.documents.run import Status
    from solocron.model.timetable import Timetable
    from solocron.model.transitions.claimant import Claimant
    from solocron.model.transitions.claiming import claim
    from solocron.model.transitions.finishing import Outcome, finish
    from solocron.schedules import Cron, dump

    schedule = Cron("* * * * *")
    slots = Timetable(schedule)
    definition = Definition(handler="h", schedule=dump(schedule))
    job = Job(name="j", incarnation=1, definition=definition, cursor=NOW)
    by = Claimant(session="s", node="n", late_for=25 * SECOND)
    at = (slots.after(NOW) or 0) + SECOND

    def life() -> object:
        taken = claim(job, now=at, by=by, resolve=lambda _: slots)
        assert taken is not None
        assert taken.doc is not None
        outcome = Outcome(status=Status.SUCCEEDED, started_at=at)
        return finish(
            taken.doc, run=taken.answer.run, fence=taken.answer.fence, outcome=outcome, now=at, resolve=lambda _: slots
        )

    return _least(life)


def _on_the_memory_store() -> float:
    """Claims of 300 jobs in batches of 100 and their finishes, as the node asks a store for them; per run."""
    from solocron.clock import SECOND
    from solocron.model.change import Change, Kind
    from solocron.model.documents.definition import Definition
    from solocron.model.documents.job import Hold, Job
    from solocron.model.documents.run import Status
    from solocron.model.timetable import Timetable
    from solocron.model.transitions.claimant import Claimant
    from solocron.model.transitions.claiming import claim
    from solocron.model.transitions.finishing import Outcome, finish
    from solocron.schedules import Every, dump
    from solocron.stores.contract import Due, Named
    from solocron.stores.memory import MemoryStore

    schedule = Every("1h")
    slots = Timetable(schedule)
    definition = Definition(handler="h", schedule=dump(schedule))
    by = Claimant(session="s", node="n", late_for=25 * SECOND)
    names = tuple(f"job-{number:05}" for number in range(JOBS))

    def resolve(_: object) -> Timetable:
        return slots

    best = float("inf")
    for _ in range(6):
        store = MemoryStore()
        now = store.clock()
        cursor = (slots.before(now) or 0) - 1
        fresh = {
            name: Job(name=name, incarnation=1, definition=definition, cursor=cursor, due_at=cursor + 1)
            for name in names
        }
        store.update(Named(Kind.JOB, names), lambda doc, at, fresh=fresh: Change(fresh[doc.name]))
        store.shift_clock(cursor + SECOND - now)
        due = Due(handlers=frozenset("h"), pools=frozenset(("default",)), limit=100)
        began = time.process_time_ns()
        done = 0
        while done < JOBS:
            applied = store.update(due, lambda doc, at: claim(doc, now=at, by=by, resolve=resolve))
            holds = {result.name: result.answer for result in applied.results}
            assert all(isinstance(hold, Hold) for hold in holds.values())
            outcome = Outcome(status=Status.SUCCEEDED, started_at=applied.now)
            store.update(
                Named(Kind.JOB, tuple(holds)),
                lambda doc, at, holds=holds, outcome=outcome: finish(
                    doc, run=holds[doc.name].run, fence=holds[doc.name].fence, outcome=outcome, now=at, resolve=resolve
                ),
            )
            done += len(holds)
        best = min(best, time.process_time_ns() - began)
    return best / JOBS / 1000


# --- the other side -------------------------------------------------------------------------------------------------


def _become_structs() -> None:
    """Let every frozen class of the model that is made or copied with each run be a struct."""
    msgspec: Any = importlib.import_module("msgspec")

    from solocron.model._fast import values

    def as_struct(cls: Any) -> Any:
        hints = typing.get_type_hints(cls)
        given: list[Any] = []
        for one in dataclasses.fields(cls):
            if one.default_factory is not dataclasses.MISSING:
                given.append((one.name, hints[one.name], msgspec.field(default_factory=one.default_factory)))
            elif one.default is not dataclasses.MISSING:
                given.append((one.name, hints[one.name], one.default))
            else:
                given.append((one.name, hints[one.name]))
        members = {
            name: value
            for name, value in vars(cls).items()
            if isinstance(value, property | classmethod) or (callable(value) and not name.startswith("__"))
        }
        members["__dataclass_fields__"] = cls.__dataclass_fields__
        as_array = cls.__name__ in ("Hold", "Last", "WaitingRun")
        return msgspec.defstruct(
            cls.__name__,
            given,
            frozen=True,
            kw_only=True,
            array_like=as_array,
            namespace=members,
            module=cls.__module__,
        )

    values.fast_init = as_struct
    values.build = lambda cls, /, **facts: cls(**facts)
    slotted = values.replace

    def replace(value: Any, /, **changes: Any) -> Any:
        return _replaced(value, **changes) if isinstance(value, msgspec.Struct) else slotted(value, **changes)

    _replaced = msgspec.structs.replace
    values.replace = replace


def _read_and_write_with_msgspec(codec: Any) -> None:
    """A state is a struct whose holds and last outcome are arrays; a session is a struct for each of its texts."""
    msgspec: Any = importlib.import_module("msgspec")

    from solocron.model._fast.values import replace
    from solocron.model.change import Kind
    from solocron.model.documents.job import Hold, Job, Last, WaitingRun
    from solocron.model.documents.session import Session

    keys = {
        "cursor": "c", "fence": "f", "nominal": "n", "due_at": "due", "active": "a", "waiting_runs": "o",
        "accepted": "k", "failures": "x", "paced": "pc", "last": "l",
    }  # fmt: skip
    state = msgspec.defstruct(
        "State",
        [
            ("cursor", int),
            ("fence", int),
            ("nominal", str | None, None),
            ("due_at", int | None, None),
            ("active", tuple[Hold, ...], ()),  # type: ignore[valid-type]
            ("waiting_runs", tuple[WaitingRun, ...], ()),  # type: ignore[valid-type]
            ("accepted", tuple[int, ...], ()),
            ("failures", int, 0),
            ("paced", int, 0),
            ("last", Last | None, None),
        ],
        frozen=True,
        omit_defaults=True,
        rename=keys,
    )
    write, read = msgspec.json.Encoder().encode, msgspec.json.Decoder(state).decode
    hints = typing.get_type_hints(Session)
    wanted = {
        one.name: (hints[one.name], one.default)
        for one in dataclasses.fields(Session)
        if one.name not in ("name", *codec._SESSION_FIXED)
    }
    moving = msgspec.defstruct("Moving", [(n, t, d) for n, (t, d) in wanted.items()], frozen=True, omit_defaults=True)
    standing = msgspec.defstruct("Standing", [(n, hints[n]) for n in codec._SESSION_FIXED], frozen=True)
    read_moving, read_standing = msgspec.json.Decoder(moving).decode, msgspec.json.Decoder(standing).decode
    plain_fixed, plain_state, plain_decode = codec.encode_fixed, codec.encode_state, codec.decode

    def encode_state(doc: Any) -> str:
        if isinstance(doc, Job):
            made = state(
                doc.cursor, doc.fence, doc.nominal, doc.due_at, doc.active, doc.waiting_runs, doc.accepted,
                doc.failures, doc.paced, doc.last,
            )  # fmt: skip
            return write(made).decode()
        if isinstance(doc, Session):
            return write(moving(*(getattr(doc, name) for name in wanted))).decode()
        return plain_state(doc)

    def encode_fixed(doc: Any) -> str:
        if isinstance(doc, Session):
            return write(standing(*(getattr(doc, name) for name in codec._SESSION_FIXED))).decode()
        return plain_fixed(doc)

    def decode(kind: Kind, name: str, fixed: str, text: str) -> Any:
        if kind is Kind.JOB:
            s = read(text)
            return replace(
                codec._fixed(fixed), name=name, cursor=s.cursor, fence=s.fence, nominal=s.nominal, due_at=s.due_at,
                active=s.active, waiting_runs=s.waiting_runs, accepted=s.accepted, failures=s.failures, paced=s.paced,
                last=s.last,
            )  # fmt: skip
        if kind is Kind.SESSION:
            one, two = read_standing(fixed), read_moving(text)
            return Session(
                name=name,
                **{n: getattr(one, n) for n in codec._SESSION_FIXED},
                **{n: getattr(two, n) for n in wanted},
            )
        return plain_decode(kind, name, fixed, text)

    codec.encode_state, codec.encode_fixed, codec.decode = encode_state, encode_fixed, decode


if __name__ == "__main__":
    sys.exit(main())
