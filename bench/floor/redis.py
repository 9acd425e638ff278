"""The floor on Redis: the store's own scripts, one call to fetch, one for the claims, one for their ends."""

from __future__ import annotations

import json

from bench.floor.documents import NODE, claimed, finished
from bench.load import HANDLER
from solocron.stores.contract import Due
from solocron.stores.redis.store import RedisStore

__all__ = ["Floor"]

_dumps = json.JSONEncoder(separators=(",", ":")).encode


class Floor:
    """One process's connection."""

    def __init__(self, store: RedisStore, session: str) -> None:
        self._access = store._access
        self._caller = store._caller
        self._session = session
        self._holder = f"{len(session)}:{session}"

    def pass_once(self, batch: int) -> int:
        """Claim up to `batch` and finish them; how many there were."""
        due = Due(handlers=frozenset((HANDLER,)), pools=frozenset(("default",)), limit=min(batch, 250))
        fetched = self._access.fetch_due(due, self._session, reserve=True)
        if not fetched.rows:
            return 0
        now = fetched.now
        held = claimed([tuple(row) for row in fetched.rows], self._session, now)
        words = [self._session, "job", fetched.reservation, str(len(held)), "", "", ""]
        for one in held:
            words += ["state", one.name, one.version, "0", one.state, str(one.due), self._holder, "", "0"]
        verdicts, version, now = self._commit(words)
        held = [one for one, verdict in zip(held, verdicts, strict=True) if verdict == "a"]  # slow: others took over
        if not held:
            return 1  # not nothing: more may be due
        words = ["", "job", "", str(len(held)), str(now), str(now + 60_000_000), ""]
        for one in held:
            mark = f"{version} {one.due} {self._holder}"
            words += ["state", one.name, mark, "0", finished(one.state, now), str(one.due), "", "", "1"]
            facts = [one.slot, "schedule", one.key, None, NODE, self._session, one.fence, now, now]
            facts += [None, None, None, one.slot]
            words += [f"{one.run} 00000001", "succeeded", str(now), "1", one.name]
            words.append(f"succeeded {now} {now} 1\n{_dumps(facts)}\n{one.name}")
        verdicts, _, _ = self._commit(words)
        assert set(verdicts) == {"a"}, verdicts
        return len(held)

    def _commit(self, words: list[str]) -> tuple[str, str, int]:
        answer = self._caller.commit(words)
        assert answer is not None
        verdicts, _, _, version, time, _, _ = answer.split(" ")
        return verdicts, version, int(time)
