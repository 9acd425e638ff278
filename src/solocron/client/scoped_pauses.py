"""Pause many jobs at once: all of them, those of a pool, those whose names match a pattern."""

from __future__ import annotations

from datetime import datetime

from solocron.author import check_author
from solocron.client.instants import check_instant
from solocron.client.job_documents import JobDocuments
from solocron.client.patterns import why_unmatchable
from solocron.clock import to_us
from solocron.errors import ConflictError, InvalidError, StoreError
from solocron.model.change import Kind
from solocron.model.documents import namespace
from solocron.model.documents.namespace import NAME, Namespace
from solocron.model.documents.scoped_pause import STANDING, Reach, Scope, ScopedPause, standing
from solocron.stores.contract import ChangeFn, Named, Result, Verdict
from solocron.stores.paging import read_pauses
from solocron.stores.until_known import update_until_known
from solocron.views import ScopedPauseView

__all__ = ["ScopedPauses"]

_LENGTH = 200


class ScopedPauses:
    """The pauses in the document of one namespace."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store

    def pauses(self) -> list[ScopedPauseView]:
        """Return the pauses of many jobs that stand, the oldest first."""
        found = standing(read_pauses(self._store), self._store.clock())
        return [ScopedPauseView.of(one) for one in sorted(found, key=lambda one: one.at)]

    def pause_all(
        self,
        *,
        pool: str | None = None,
        match: str | None = None,
        by: str | None = None,
        note: str | None = None,
        until: datetime | None = None,
        triggers: bool = False,
    ) -> ScopedPauseView:
        """Start nothing more by schedule of any job, of a pool, or of the names that match."""
        undone = "nothing was paused"
        scope = _scope(pool, match, undone)
        why = why_unmatchable(match) if match is not None else None
        if why is not None:
            raise InvalidError(f"no name can match {match!r:.60}: {why}; {undone}.")
        check_author(by, note, undone=undone)
        if until is not None:
            check_instant("until", until, undone=undone)
        end = None if until is None else to_us(until)
        if end is not None and end <= self._store.clock():
            raise InvalidError(f"until={until} is in the past; nothing was paused.")
        wanted = ScopedPause(scope=scope, at=0, by=by, note=note, until=end, triggers=triggers)
        identity, token = self._store.identity(), self._documents.runtime.rng.token()
        result = self._change(
            lambda doc, now: namespace.pause(doc, wanted=wanted, identity=identity, token=token, now=now)
        )
        if result.verdict is Verdict.DECLINED:
            raise ConflictError(f"{STANDING} pauses stand already, so {scope} was not paused; lift some of them first.")
        assert isinstance(result.answer, Namespace)
        return ScopedPauseView.of(result.answer.pauses[-1])

    def resume_all(
        self,
        *,
        pool: str | None = None,
        match: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> ScopedPauseView | None:
        """Lift the pause of all jobs, of a pool, or of a pattern; None if none of that scope stands."""
        undone = "nothing was resumed"
        scope = _scope(pool, match, undone)
        check_author(by, note, undone=undone)
        # Read first: a change whose outcome was unknown, and that is repeated, finds that nothing stands any more.
        stood = [one for one in standing(read_pauses(self._store), self._store.clock()) if one.scope == scope]
        result = self._change(lambda doc, now: namespace.lift_pause(doc, scope=scope, by=by, now=now, note=note))
        if isinstance(result.answer, ScopedPause):
            return ScopedPauseView.of(result.answer)
        return ScopedPauseView.of(stood[0]) if stood else None

    def _change(self, change: ChangeFn) -> Result:
        (result,) = update_until_known(self._store, Named(Kind.NAMESPACE, (NAME,)), change).results
        if result.verdict not in (Verdict.APPLIED, Verdict.DECLINED):
            raise StoreError(
                "the namespace's document could not be changed: other clients keep changing it, or the store does not "
                "respond; see `solocron status`, and try again."
            )
        self._documents.notify()
        return result


def _scope(pool: str | None, match: str | None, undone: str) -> Scope:
    """Return the scope; raise if it is none."""
    if pool is not None and match is not None:
        raise InvalidError(f"give a pool or a pattern to match, not both; {undone}. Each pause has one scope.")
    for what, value in (("pool", pool), ("match", match)):
        if value is None:
            continue
        if not isinstance(value, str) or not 0 < len(value) <= _LENGTH or not value.isprintable() or " " in value:
            raise InvalidError(
                f"{what}={value!r:.60} cannot be used: 1 to {_LENGTH} printable characters without a space; {undone}."
            )
    if pool is not None:
        return Scope(Reach.POOL, pool)
    return Scope(Reach.ALL) if match is None else Scope(Reach.MATCH, match)
