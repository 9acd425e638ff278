"""`with once(key) as claim:` an effect that one caller begins, however many try, now or in a year.

The key's document says open, done or uncertain. A caller that dies in between leaves it uncertain. The next caller does
not guess: `check=` asks the outside world, or `on_uncertain=` decides, or `UncertainOutcome` is raised.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from solocron.clock import iso
from solocron.duration import parse_duration, to_us
from solocron.effects.desk import Desk
from solocron.effects.locks.writing import check_text, write
from solocron.effects.once_block import Claim, OnceBlock
from solocron.effects.results import close
from solocron.errors import (
    InvalidError,
    KeyBusy,
    RunStopped,
    SolocronError,
    StaleFence,
    StoreError,
    UncertainOutcome,
)
from solocron.lease.liveness import Mode
from solocron.model.change import Change, Kind
from solocron.model.documents import key as model
from solocron.model.transitions.giving_up import GivingUp

__all__ = ["Claim", "Once"]

Span = timedelta | int | float | str
_LONGEST_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class _World:
    """A question to the outside world: did it happen?"""

    key: str


class Once(OnceBlock):
    """One use of one key, as a sync or async context manager."""

    def __init__(
        self,
        desk: Desk,
        key: str,
        *,
        wait: Span | None = None,
        keep: Span | None = None,
        check: Callable[..., Any] | None = None,
        on_uncertain: str = "raise",
    ) -> None:
        super().__init__(check_text(key, "key", untouched="Nothing was begun."))
        if on_uncertain not in ("raise", "repeat", "skip"):
            raise InvalidError(f'key {key!r}: on_uncertain={on_uncertain!r}; choose "raise", "repeat" or "skip".')
        if check is not None and not callable(check):
            raise InvalidError(f"key {key!r}: check={check!r:.60} cannot be called; nothing was begun.")
        self._desk = desk
        self._wait = None if wait is None else parse_duration(wait, what=f"key {key!r}: wait").total_seconds()
        self._keep = None if keep is None else to_us(parse_duration(keep, what=f"key {key!r}: keep"))
        self._check = check
        self._on_uncertain = on_uncertain
        self._token = ""
        """Drawn anew with each beginning: one that was given up may still be released later."""
        self._session: str | None = None
        self._claim: Claim | None = None

    # --- beginning -----------------------------------------------------------------------------------------------

    def _enter(self) -> Claim:
        tries, answer = self._tries(), None
        while True:
            try:
                asked = tries.send(answer)
            except StopIteration as end:
                return self._begun(end.value)
            if isinstance(asked, _World):
                answer = self._ask()
                if inspect.isawaitable(answer):
                    close(answer)
                    raise InvalidError(
                        f"key {self.key!r}: check is a coroutine; use it with `async with` in a coroutine job."
                    )
            else:
                answer = None
                self._desk.store.wait(asked)

    async def _enter_async(self) -> Claim:
        import asyncio

        from solocron.dispatch.in_thread import in_thread

        tries, answer = self._tries(), None
        while True:
            asked = await in_thread(partial(_advance, tries, answer), undo=self._undo)
            if isinstance(asked, Claim):
                return self._begun(asked)
            answer = None
            if isinstance(asked, _World):
                answer = self._ask()
                answer = await answer if inspect.isawaitable(answer) else answer
            else:
                await asyncio.sleep(asked)

    def _tries(self) -> Generator[float | _World, Any, Claim]:
        """Begin, or find out that it is done; yield pauses, and the question to the outside world."""
        desk = self._desk
        desk.check()
        self._token = desk.runtime.rng.token()
        session = self._session = desk.take()
        by = model.Opening(token=self._token, session=session, owner=desk.owner, run=desk.run, fence=desk.fence)
        until = desk.runtime.clock.boot() + (self._wait or 0.0)
        dead: frozenset[str] = frozenset()
        pause, claim = 0.01, None
        try:
            while claim is None:
                answer, now = self._write(partial(_opened, by=by, dead=dead))
                if isinstance(answer, model.Opened):
                    claim = Claim(self.key, first=True)
                elif isinstance(answer, model.Done):
                    claim = Claim(self.key, first=False, value=answer.value)
                elif isinstance(answer, model.Doubt):
                    claim = yield from self._in_doubt(answer, by)
                elif self._holder_is_dead(answer.session, now):
                    dead |= {answer.session}
                else:
                    left = until - desk.runtime.clock.boot()
                    if left <= 0:
                        raise KeyBusy(
                            f"key {self.key!r}: {answer.owner} is at work under it since {iso(answer.since)}; it was "
                            'not begun a second time. wait="30s" waits for its end.'
                        )
                    yield min(pause, left)
                    pause = min(pause * 1.6, _LONGEST_PAUSE)
                    desk.check()
            return claim
        except StoreError:
            self._give_up(SolocronError())  # the store may have it open without our knowing, and no block runs
            raise
        finally:
            if claim is None or not claim.first:
                desk.drop()

    def _holder_is_dead(self, session: str, now: int) -> bool:
        mode = Mode.TICK if self._wait is None else Mode.WATCH
        return self._desk.liveness.is_dead(session, mode, now=now)

    def _in_doubt(self, doubt: model.Doubt, by: model.Opening) -> Generator[_World, Any, Claim | None]:
        """Resolve a key whose holder died: mark it, do it again, skip it, or raise.

        None: another caller has decided.
        """
        repeat = self._on_uncertain == "repeat"
        if self._check is not None:
            happened = yield _World(self.key)
            if happened is True:
                done, _ = self._write(partial(_closed, token=doubt.token, keep=self._keep))
                return None if done is None else Claim(self.key, first=False)
            repeat = happened is False
        if repeat:
            opened, _ = self._write(partial(_seized, by=by, after=doubt.token))
            return None if opened is None else Claim(self.key, first=True)
        if self._on_uncertain == "skip":
            return Claim(self.key, first=False, uncertain=True)
        raise UncertainOutcome(
            f"key {self.key!r}: {doubt.owner} began it at {iso(doubt.since)} and its lease ended; it may have "
            "happened. Nothing was begun or marked. Look, then give check=, "
            'on_uncertain="repeat" or on_uncertain="skip".'
        )

    def _ask(self) -> Any:
        assert self._check is not None
        return self._check(self.key) if _needs_key(self._check) else self._check()

    def _begun(self, claim: Claim) -> Claim:
        self._claim = claim
        if claim.first:
            self._desk.runtime.failpoint("key-opened")
        return claim

    # --- ending --------------------------------------------------------------------------------------------------

    def _leave(self, error: BaseException | None) -> None:
        claim, self._claim = self._claim, None
        if claim is None or not claim.first:
            return
        try:
            if error is None:
                self._finish(claim)
            else:
                self._give_up(error)
        finally:
            self._desk.drop()

    async def _leave_async(self, error: BaseException | None) -> None:
        from solocron.dispatch.in_thread import in_thread

        await in_thread(partial(self._leave, error))

    def _finish(self, claim: Claim) -> None:
        """Mark it as done; retry an unavailable store for as long as the lease can be trusted."""
        self._desk.runtime.failpoint("key-closing")
        done, _ = self._write(
            partial(_closed, token=self._token, keep=self._keep, value=claim.value), check=self._desk.lease
        )
        self._desk.runtime.failpoint("key-closed")
        if done is None:
            raise StaleFence(
                f"key {self.key!r} was taken over meanwhile, so its end was not marked: this holder was counted as "
                "dead. Make its lease longer, or its effect shorter."
            )

    def _give_up(self, error: BaseException) -> None:
        """Release the key of a block that raised: it has not done its effect. One cut off from outside may have.

        `RunStopped` is raised by the block's own call of its run, so it counts as the former.
        """
        uncertain = not isinstance(error, Exception | RunStopped)
        try:
            self._write(GivingUp(Kind.KEY, self.key, self._token, uncertain), stubborn=True)
        except (SolocronError, RunStopped) as trouble:  # what ended the block is what the caller must see
            later = "it will be uncertain" if self._desk.ward() is None else "the node releases it later"
            self._desk.tell(f"a key could not be released; {later}", key=self.key, error=str(trouble))

    def _undo(self, asked: Any) -> None:
        """Undo the opening: the coroutine was cancelled before its block began, so nothing has happened."""
        if isinstance(asked, Claim) and asked.first:
            self._give_up(SolocronError())
            self._desk.drop()

    def _write(
        self, change: Any, *, check: Callable[[], None] | None = None, stubborn: bool = False
    ) -> tuple[Any, int]:
        desk = self._desk
        result, now = write(
            desk.store, Kind.KEY, self.key, change, runtime=desk.runtime, session=self._session, ward=desk.ward(),
            check=check, stubborn=stubborn, lost=desk.lost,
        )  # fmt: skip
        return (result.answer if result.verdict == "applied" else None), now


def _opened(doc: Any, now: int, *, by: model.Opening, dead: frozenset[str]) -> Change:
    return model.open_key(doc, by, now=now, dead=dead)


def _seized(doc: Any, now: int, *, by: model.Opening, after: str) -> Change | None:
    return model.seize(doc, by, after=after, now=now)


def _closed(doc: Any, now: int, *, token: str, keep: int | None, value: Any = None) -> Change | None:
    return model.close(doc, token=token, now=now, value=value, keep=keep)


def _advance(tries: Generator[Any, Any, Claim], answer: Any) -> Any:
    try:
        return tries.send(answer)
    except StopIteration as end:
        return end.value


def _needs_key(function: Callable[..., Any]) -> bool:
    """Return whether it must be called with the key: `lambda id=id: ...` needs no argument and must not get one."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a built-in function has no signature
        return False
    return False
