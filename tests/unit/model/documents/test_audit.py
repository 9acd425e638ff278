"""An entry of the audit is written before the act, completed once, and goes by age alone."""

from __future__ import annotations

from dataclasses import replace

from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents.audit import ASKED, DONE, Act, ask, complete, name_before, name_of, prune, read

ACT = Act(act="pause", subject="etl.load", via="cli", who="ana", note="schema move", before={"paused": None})


def asked(act: Act = ACT, *, at: int = 1_000) -> SmallDocument:
    doc = ask(Absent(Kind.AUDIT, name_of(at, "t")), act, at=at).doc
    assert isinstance(doc, SmallDocument)
    return doc


def test_an_entry_says_all_that_was_asked() -> None:
    entry = read(asked())
    assert (entry.at, entry.act, entry.result, entry.after) == (1_000, ACT, ASKED, None)
    assert ask(asked(), replace(ACT, who="eve"), at=1_000).doc == asked(), "a repeated request changes nothing"


def test_an_entry_is_completed_once() -> None:
    change = complete(asked(), result=DONE, after={"paused": True})
    assert change is not None
    assert isinstance(change.doc, SmallDocument)
    assert read(change.doc) == replace(read(asked()), result=DONE, after={"paused": True})
    assert complete(change.doc, result="refused") is None
    assert complete(Absent(Kind.AUDIT, "n"), result=DONE) is None


def test_names_put_the_newest_first_and_the_old_behind_one_name() -> None:
    now = 1_800_000_000_000_000
    names = [name_of(now + by, token) for by, token in ((1, "f" * 32), (0, "0" * 32), (0, "f" * 32), (-1, "0" * 32))]
    assert names == sorted(names)
    assert [name for name in names if name > name_before(now)] == names[3:]


def test_an_entry_goes_by_age_alone() -> None:
    assert prune(asked(at=1_000), before=1_000) is None
    change = prune(asked(at=999), before=1_000)
    assert change is not None
    assert change.doc is None
