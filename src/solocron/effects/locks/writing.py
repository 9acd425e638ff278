"""One change of one small document, repeated until its outcome is known.

Every change that goes through here can be repeated: it carries a token or a fence by which the store's document
recognises it. So a lost reply costs a round trip and no more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from solocron.errors import InvalidError, LeaseLost, LockLost, StoreError, StoreUnavailable
from solocron.model.change import Kind
from solocron.model.transitions.giving_up import GivingUp
from solocron.runtime import Runtime
from solocron.stores.contract import Applied, ChangeFn, Gate, Named, Result, Store, Verdict
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

    With `check`, an unavailable store is tried until `check` raises; else a few times if `stubborn`.

    With `ward`, what was written is remembered, and under a session nothing is written while the store is checked. A
    store that went back may decline because it lacks what this process wrote, or acknowledge what it has lost by now:
    the write is then repeated, where there is a `check` also after a refusal. A change that gives something up is
    repeated by the node until the store has acknowledged it. None: a process without a node writes it, or it is what
    people ask for, which is not put back.
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
    gates: list[Gate] = []

    def tested() -> Gate:
        assert ward is not None
        gates.append(ward.gate())
        return gates[-1]

    gated = ward is not None and session is not None
    vain = 0
    while True:
        gates.clear()
        applied = update_until_known(
            store, Named(kind, (name,)), change, session=session, gate=tested if gated else None, again=again
        )
        if ward is None:
            break
        verdict = applied.results[0].verdict if applied.results and not applied.shut else None
        # A late reply, and a refusal by a store that went back, say nothing: no check has put back what they are about.
        if verdict is Verdict.APPLIED:
            known = ward.wrote(kind, name, applied.results[0].doc, gates[-1] if gates else None)
        else:
            # A declined change is not written, so no commit has tested the gate.
            declined = verdict is Verdict.DECLINED and session is not None and check is not None and bool(gates)
            known = not declined or stands_open(store, _as_known_now(gates[0], ward), session or "")
        if known:
            break
        vain += 1
        if not again(vain, applied, None):
            raise _not_done(kind, name, "the store went back meanwhile")
    if applied.shut:
        raise _not_done(kind, name, "the store went back, and is being checked")
    (result,) = applied.results
    if result.verdict is Verdict.APPLIED and ward is not None and isinstance(change, GivingUp):
        ward.gave_up(change)
    if result.verdict is Verdict.BLOCKED:
        raise StoreError(f"{kind} {name!r} could not be changed: {result.error}; nothing was written.")
    if result.verdict is Verdict.UNKNOWN:
        raise _not_done(kind, name, "the store did not answer")
    if result.verdict is Verdict.CONTENDED:
        raise _not_done(kind, name, "others keep changing it")
    return result, applied.now


def _as_known_now(first: Gate, ward: Ward) -> Gate:
    """Return the gate of the first try with the renewals that were acknowledged since.

    Only the first: a later gate may be of an epoch in which the document has been put back. But the session may have
    been renewed during the tries, and the store may have gone back by no more than that renewal.
    """
    now = ward.gate()
    return replace(first, beats=max(first.beats, now.beats)) if now.words == first.words else first


def _not_done(kind: Kind, name: str, trouble: str) -> StoreUnavailable:
    return StoreUnavailable(f"{kind} {name!r} could not be changed: {trouble}; count it as not done.")
