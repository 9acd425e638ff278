"""Bodies of a simulated world that use locks, keys and steps, and what must hold for every write of theirs.

What the bodies did is noted by the bodies themselves; what the store accepted is seen commit by commit. A step returns
the fence of the attempt that carried it out, so that a result shows who saved it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proof.invariants.checker import Violation
from proof.workloads.ledger import _writer as write_lines
from solocron.clock import SECOND
from solocron.effects.locks.held import HELD, Held
from solocron.errors import RunStopped, SolocronError, StaleFence
from solocron.jobs.decorators import every
from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents.key import Stand, stand_of
from solocron.model.documents.lock import LockState, state_of
from solocron.model.documents.session import Life, Session
from solocron.model.documents.steps import finished
from solocron.scheduler import Scheduler
from solocron.scheduler.hooks import lock_place_of
from solocron.testing.simulation.database import Commit
from solocron.testing.simulation.kernel import Process, SimEvent

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["Effects"]

RETRIES = 5
STEPS = ("one", "two", "three")


class Effects:
    """The jobs with effects of one world, and their judge."""

    def __init__(self, world: World, jobs: int) -> None:
        self._world = world
        self._dice = world.kernel.dice
        self.attempts = {f"effects-{number}": 1 + RETRIES for number in range(jobs)}
        self.did: Counter[str] = Counter()
        """Counts of what bodies did, and of checks."""
        self._saved: dict[tuple[str, str], tuple[int, Process, float]] = {}
        """The fence under which each step was saved, by which process, and when."""
        self._acknowledged: set[tuple[str, str, str]] = set()
        """Steps whose results bodies were given: run, step, and the name of the body's process."""
        self._done: dict[str, list[tuple[Process, float]]] = {}
        """Each key's effect: in which process it happened, and since when that process wanted the key."""
        self._inside: dict[str, list[tuple[Held, Process, float]]] = {}
        self._fences: dict[str, int] = {}
        self._doubted: set[str] = set()
        """Keys that were ever in doubt."""
        world.database.on_commit.append(self._commit)

    # --- bodies --------------------------------------------------------------------------------------------------

    def declare(self, scheduler: Scheduler, process: Process) -> None:
        lease = self._world.options.lease
        lock_place_of(scheduler).tell = self._told
        for number, name in enumerate(self.attempts):
            body = self._body(scheduler, process)
            body.__qualname__ = name
            # A body that is let go works on, beside the next attempt, under a session that lives: only fences stop it.
            patience: dict[str, Any] = {"timeout": lease, "on_stuck": "abandon"} if number % 2 == 0 else {}
            when = every(
                lease * (2 + number), name=name, retries=RETRIES, overlap="queue", on_lost="finish", **patience
            )
            scheduler.discover(when(body))

    def _body(self, scheduler: Scheduler, process: Process) -> Callable[[Any], Any]:
        world, dice, lease = self._world, self._dice, self._world.options.lease

        def pause() -> None:
            if not world.calm:
                SimEvent(world.kernel).wait(dice.choice((0.0, 0.1, 0.1, 1.0, lease / 2, lease, 4 * lease)))

        def carry_out(step: str, run: Any) -> int:
            world.guarded(lambda: self._executed(run.id, step, run.fence))
            pause()
            fence: int = run.fence
            return fence

        def body(run: Any) -> None:
            line = write_lines(world, process, run, stoppable=False)
            line("start")
            entered = world.kernel.now
            for step in STEPS:
                try:
                    run.step(step).call(carry_out, step, run)
                except StaleFence:
                    world.guarded(lambda: self._refused(run.id, run.fence, entered))
                    raise
                self._acknowledged.add((run.id, step, process.name))
            key = f"{run.key}/effect"
            asked = world.kernel.now
            with run.once(key, on_uncertain="repeat" if self._may_repeat(key) else "skip") as claim:
                if claim:
                    if not world.calm and dice.random() < 0.2:
                        raise ValueError("before the effect")
                    pause()
                    world.guarded(lambda: self._happened(key, process, asked))
                    pause()
            alive = dice.random() < 0.5
            options: dict[str, Any] = {"keep_alive": True} if alive else {"at_most": 2 * lease}
            lock = scheduler.lock("tied" if alive else "timed", wait=dice.choice((None, lease)), **options)
            wanted = world.kernel.now
            held = lock.acquire()
            if held is not None:
                self._enter(held, process, wanted)
                pause()
                if not alive and dice.random() < 0.7:
                    # As one who does not look whether the lock is still its own: the store has to refuse it.
                    lock.extend(held._token, 2 * lease, None)
                    pause()
                self._leave(held)
                held.release()
            line("end")

        def careful(run: Any) -> None:
            HELD.set(())  # every body is a thread of its own
            try:
                body(run)
            except (SolocronError, RunStopped) as error:
                self.did[type(error).__name__] += 1
                raise

        return careful

    def _told(self, sentence: str, **facts: Any) -> None:
        self.did[sentence.partition(";")[0]] += 1

    def _may_repeat(self, key: str) -> bool:
        """Of half of the keys the owner said that they may be repeated."""
        return len(key) + sum(map(ord, key)) & 1 == 1

    def _is_promised(self, process: Process, since: float) -> bool:
        """Whether the store must know what a process wrote at a time: always, unless it went back since (I22)."""
        return self._world.going_back.is_kept(process, since)

    def _executed(self, run: str, step: str, fence: int) -> None:
        """I17: what is saved is not carried out again by the same or a later attempt.

        A process puts back what the store acknowledged: of a save whose reply was lost it does not know.
        """
        self.did["step"] += 1
        saved = self._saved.get((run, step))
        if saved is None or saved[0] > fence or not self._is_promised(*saved[1:]):
            return
        _, process, at = saved
        if self._world.going_back.went_back_since(at) and (run, step, process.name) not in self._acknowledged:
            return
        raise Violation("I17", f"{run} step {step} was saved under {saved[0]} and carried out again under {fence}")

    def _refused(self, run: str, fence: int, entered: float) -> None:
        """I17: a step is refused only where a later attempt was granted, also before its node has noticed a loss."""
        self.did["I17 refusals"] += 1
        later = any(of == run and other > fence for of, other in self._world.checker.granted)
        if self._world.options.goes_back and not later and self._world.going_back.is_noticed(entered):
            raise Violation("I17", f"{run} was refused its steps under {fence}, and no later attempt was granted")

    def _happened(self, key: str, process: Process, asked: float) -> None:
        """I16: an effect happens once, unless it was in doubt and its owner said to repeat it."""
        self.did["key"] += 1
        before = self._done.setdefault(key, [])
        again = any(self._is_promised(*one) for one in before)
        before.append((process, asked))
        if again and not (self._may_repeat(key) and key in self._doubted):
            raise Violation("I16", f"the effect of {key} happened {len(before)} times")

    def _enter(self, held: Held, process: Process, wanted: float) -> None:
        """I1: no other body is inside with a lock that it can still trust. A frozen or dead one trusts nothing."""
        self.did["lock"] += 1
        others = self._inside.setdefault(held.name, [])
        if held.name == "timed" and self._world.options.clock_step:
            return  # the store's clock decides about a lock with a time; a step of it ends one early, as is documented
        for other, where, since in others:
            trusted = where.alive and not where.frozen and not other.lost and not held.lost
            kept = held.name == "tied" or not self._world.going_back.went_back_since(since)  # see going-back.md
            if trusted and kept and self._is_promised(where, since):
                self._world.failed(Violation("I1", f"{held!r} and {other!r} are inside at once"))
        others.append((held, process, wanted))

    def _leave(self, held: Held) -> None:
        self._inside[held.name] = [one for one in self._inside[held.name] if one[0] is not held and one[1].alive]

    # --- commits -------------------------------------------------------------------------------------------------

    def _commit(self, commit: Commit) -> None:
        after = commit.after
        if commit.kind is Kind.STEP and isinstance(after, SmallDocument):
            self._step(commit, after)
        elif commit.kind is Kind.KEY and isinstance(commit.before, SmallDocument | Absent):
            self._key(commit, commit.before, after if isinstance(after, SmallDocument) else None)
        elif (
            commit.kind is Kind.LOCK
            and isinstance(after, SmallDocument)
            and isinstance(commit.before, SmallDocument | Absent)
        ):
            self._lock(commit, state_of(commit.before), state_of(after))

    def _step(self, commit: Commit, after: SmallDocument) -> None:
        """I17: one result per step, saved under the fence of the last attempt that has entered; fences grow."""
        self.did["I17 commits"] += 1
        before = commit.before if isinstance(commit.before, SmallDocument) else None
        known = finished(before) if before is not None else {}
        fence = before.body["fence"] if before is not None else 0
        if after.body["fence"] < fence:
            raise Violation("I17", f"{commit.name}: the fence of its steps went back")
        for name, done in finished(after).items():
            if name in known:
                if known[name] != done:
                    raise Violation("I17", f"{commit.name} step {name} has a second result")
                continue
            if done.value != fence and not self._world.options.goes_back:
                raise Violation("I17", f"{commit.name} step {name} of fence {done.value} was saved under {fence}")
            if self._saved.get((commit.name, name), (None,))[0] != done.value:  # and not what is put back
                self._saved[(commit.name, name)] = (done.value, self._world.process_named(commit.client), commit.at)
        if any(name not in finished(after) for name in known):
            raise Violation("I17", f"{commit.name} has lost a step")

    def _key(self, commit: Commit, before: SmallDocument | Absent, after: SmallDocument | None) -> None:
        """I4: only who is at work ends it, and what is done stays done; taken over only from the dead."""
        self.did["I4 keys"] += 1
        if isinstance(before, Absent):
            return
        if self._world.options.goes_back:
            self._doubted.add(commit.name)  # what is put back may be an effect in doubt
            return
        if stand_of(before) is Stand.DONE:
            raise Violation("I4", f"key {commit.name} was done, and was changed")
        same = after is not None and after.body["token"] == before.body["token"]
        over = self._is_over(before.session) or stand_of(before) is Stand.UNCERTAIN
        later = after is not None and after.body.get("run") == before.body.get("run")
        if after is not None and (stand_of(after) is Stand.UNCERTAIN or not same):
            self._doubted.add(commit.name)
        if same or after is None:
            holder = before.body["owner"].rpartition(" on ")[2]
            if commit.client != holder and not over:
                raise Violation("I4", f"{commit.client} ended key {commit.name}, under which {holder} is at work")
        elif not over and not later:
            raise Violation("I4", f"key {commit.name} was taken from a live holder")

    def _lock(self, commit: Commit, before: LockState, after: LockState) -> None:
        """I3: fences grow. I1: granted when free. I4: ended and extended by its holder only. I14: set, not added."""
        self.did["I4 locks"] += 1
        if self._world.options.goes_back:
            return  # a grant that is put back is no second one
        now = max(commit.now, commit.decided)  # the store's clock may have stepped back since it was decided
        over = self._is_over(before.session) if before.session else before.until is None or before.until <= now
        if after.token is not None and after.token != before.token:
            if after.fence <= max(before.fence, self._fences.get(commit.name, 0)):
                raise Violation("I3", f"lock {commit.name} was granted with fence {after.fence} a second time")
            self._fences[commit.name] = after.fence
            if not over:
                raise Violation("I1", f"lock {commit.name} was granted to {after.owner} while {before.owner} had it")
        elif before.token is not None and (after.token, after.until) != (before.token, before.until):
            foreign = commit.client != before.owner
            if foreign and (before.session is None or not self._is_over(before.session)):
                raise Violation("I4", f"{commit.client} changed lock {commit.name}, which {before.owner} holds")
        longest = round(2 * self._world.options.lease * SECOND)
        if after.until is not None and after.until != before.until and after.until > commit.decided + longest:
            raise Violation("I14", f"lock {commit.name} was taken for longer than any node asked for")

    def _is_over(self, session: str | None) -> bool:
        """Whether a session is dead; who never existed, or was swept and forgotten, counts as dead."""
        found = self._world.database.docs.get((Kind.SESSION, session or ""))
        return session is None or found is None or not isinstance(found[0], Session) or found[0].state is not Life.LIVE

    def check_quiescence(self) -> None:
        """I14: nothing is held by the dead."""
        for doc, _ in self._world.database.docs.values():
            if isinstance(doc, SmallDocument) and doc.session is not None and self._is_over(doc.session):
                raise Violation("I14", f"{doc.kind} {doc.name} is held by a session that is dead")
