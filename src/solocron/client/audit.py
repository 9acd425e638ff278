"""Keep and read the audit of a namespace: an act is on record before it is done, or it is not done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from solocron.author import check_author
from solocron.client.job_documents import JobDocuments
from solocron.clock import from_us
from solocron.effects.locks.writing import write
from solocron.errors import InvalidError, SolocronError, StoreError
from solocron.model.change import Kind
from solocron.model.documents import audit
from solocron.model.documents.audit import Act, Entry
from solocron.stores.contract import All, Named
from solocron.stores.paging import PAGE, read_documents
from solocron.views import AuditPage, AuditView

__all__ = ["Audit", "Audited"]

_SCAN = 20_000
_RESULT = 1_000


class Audited:
    """An act that is under way. The caller sets what is so after it, as plain JSON."""

    after: Any = None


class Audit:
    """The audit of a namespace."""

    def __init__(self, documents: JobDocuments) -> None:
        self._runtime = documents.runtime
        self._store = documents.store

    @contextmanager
    def audited(self, act: Act, *, named: tuple[Kind, str] | None = None) -> Iterator[Audited]:
        """Put an act on record, let it be done, and add what came of it.

        If it cannot be put on record, the error is raised and nothing is done. If what came of it cannot be added, the
        act stands, and its entry says that the outcome is unknown. An act about a `named` document that is not there
        leaves no entry, nor does one with an author or a note that cannot be kept: it will be refused, and a mistake
        must write nothing.
        """
        if not _can_be_kept(act) or (named is not None and not self._store.read(Named(named[0], (named[1],)))):
            yield Audited()
            return
        at = self._store.clock()
        name = audit.name_of(at, self._runtime.rng.token())
        write(
            self._store, Kind.AUDIT, name, lambda doc, now: audit.ask(doc, act, at=at), runtime=self._runtime, ward=None
        )
        under_way = Audited()
        try:
            yield under_way
        except SolocronError as error:
            self._complete(name, str(error) or type(error).__name__, None)
            raise
        self._complete(name, audit.DONE, under_way.after)

    def entries(
        self,
        *,
        who: str | None = None,
        subject: str | None = None,
        limit: int = 50,
        after: str | None = None,
        scan: int = _SCAN,
    ) -> AuditPage:
        """Return entries, newest first; `after` is the `next` of the page before.

        A filter has no index: `scan` entries are looked at, a statement for each thousand of them.
        """
        if not 1 <= limit <= 1_000:
            raise InvalidError(f"limit={limit}: give a whole number from 1 to 1000.")
        found, position, looked, last = list[Entry](), after or "", 0, 0
        size = min(limit if who is None and subject is None else PAGE, scan)
        while looked < scan:
            page = read_documents(self._store, All(Kind.AUDIT, after=position, limit=size))
            for doc in page:
                entry, position, looked = audit.read(doc), doc.name, looked + 1
                if who in (None, entry.act.who) and subject in (None, entry.act.subject):
                    found.append(entry)
                if len(found) == limit:
                    return AuditPage(tuple(map(AuditView.of, found)), position)
                last = entry.at
            if len(page) < size:
                return AuditPage(tuple(map(AuditView.of, found)))
        return AuditPage(tuple(map(AuditView.of, found)), position, from_us(last))

    def _complete(self, name: str, result: str, after: Any) -> None:
        with suppress(StoreError):
            write(
                self._store,
                Kind.AUDIT,
                name,
                lambda doc, now: audit.complete(doc, result=result[:_RESULT], after=after),
                runtime=self._runtime,
                ward=None,
            )


def _can_be_kept(act: Act) -> bool:
    try:
        check_author(act.who, act.note, undone="")
    except InvalidError:
        return False
    return True
