"""One change of one small document, repeated until its outcome is known.

Every change that goes through here can be repeated: it carries a token or a fence by which the store's document
recognises it. So a lost reply costs a round trip and no more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from solocron.errors import InvalidError, LeaseLost, LockLost, StoreError, StoreUnavailable
from solocron.model.change import Kind
from solocron.model.transitions.giving_up import GivingUp
from solocron.runtime import Runtime
from solocron.stores.contract import Applied, ChangeFn, Named, Result, Store, Verdict
from solocron.stores.until_known import update_until_known
from solocron.stores.ward import Ward, stands_open

__all__ = ["Tell", "check_text", "tell", "write"]

log = logging.getLogger("solocron")

Tell = Callable[..., None]
"""Reports a fault where there is no caller to raise to: a sentence, and the facts."""


def tell(sentence: str, **facts: Any) -> None:
    """Write the sentence to the log."""
    log.warning(sentence, extra={"event": sentence.partition(";")[0], **facts})


TRIES = 8
NAME_LIMIT = 200


def check_text(text: object, what: str, *, untouched: str) -> str:
    """Return a name that every store can keep, or raise; `untouched` says in the error what did not happen."""
    if not isinstance(text, str) or not 0 < len(text) <= NAME_LIMIT or not text.isprintable() or text != text.strip():
        raise InvalidError(
            f"{what} {text!r:.60} cannot be used: 1 to {NAME_LIMIT} printable characters, no space at either end. "
            f"{untouched}"
        )
    return text


def write(
    store: Store,
    kind: Kind,
    name: str,
    change: ChangeFn,
    *,
    runtime: Runtime,
    session: str | None = None,
    ward: Ward | None,
    check: Callable[[], Any] | None = None,
    stubborn: bool = False,
    lost: type[LockLost | LeaseLost] = LockLost,
) -> tuple[Result, int]:
    """Return the result, applied or declined, and the store's time. With `session`, raise `lost` unless it is live.

    With `ward`, what was written is remembered, and under a session nothing is written while the store is checked.
    None: a process without a node writes it, or it is what people ask for, which is not put back.

    With `check`, an unavailable store is tried until `check` raises; else a few times if `stubborn`. With `check` and
    `ward`, so is a store that went back and declines because it lacks what this process wrote.

    With `ward`, the node repeats a change that gives something up until the store has acknowledged it.
    """

    def again(tries: int, applied: Applied | None, error: StoreUnavailable | None) -> bool:
        if applied is not None and not applied.alive:
            raise lost(
                f"{kind} {name!r}: the session that should hold it is not live any more; nothing was written. "
                "Stop, and begin anew."
            )
        if check is not None:
            check()
        elif tries >= TRIES or (error is not None and (not stubborn or tries >= TRIES // 2)):
            return False
        runtime.event().wait(min(0.005 * 2.0 ** min(tries, 8), 1.0) * runtime.rng.uniform(0.5, 1.5))
        return True

    if ward is not None and isinstance(change, GivingUp):
        ward.giving_up(change)
    gate = ward.gate if ward is not None and session is not None else None
    refused = 0
    while True:
        # The gate of before the request: a later one may be of an epoch in which the document has been put back.
        asked = None if gate is None or check is None else gate()
        applied = update_until_known(store, Named(kind, (name,)), change, session=session, gate=gate, again=again)
        if ward is None or session is None or asked is None or not _is_declined(applied):
            break
        if stands_open(store, asked, session):  # a declined change is not written: no commit has tested the gate
            break
        refused += 1
        again(refused, applied, None)
    if applied.shut:
        raise _not_done(kind, name, "the store went back, and is being checked")
    (result,) = applied.results
    if result.verdict is Verdict.APPLIED and ward is not None:
        ward.wrote(kind, name, result.doc)
        if isinstance(change, GivingUp):
            ward.gave_up(change)
    if result.verdict is Verdict.BLOCKED:
        raise StoreError(f"{kind} {name!r} could not be changed: {result.error}; nothing was written.")
    if result.verdict is Verdict.UNKNOWN:
        raise _not_done(kind, name, "the store did not answer")
    if result.verdict is Verdict.CONTENDED:
        raise _not_done(kind, name, "others keep changing it")
    return result, applied.now


def _is_declined(applied: Applied) -> bool:
    return any(result.verdict is Verdict.DECLINED for result in applied.results)


def _not_done(kind: Kind, name: str, trouble: str) -> StoreUnavailable:
    return StoreUnavailable(f"{kind} {name!r} could not be changed: {trouble}; count it as not done.")
