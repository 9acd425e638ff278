"""Wrong about the gate: whether a claim is granted after the store went back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import Applied, ChangeFn, Doc, Gate, Named, Which
from solocron.stores.documents import kind_of
from solocron.stores.memory import MemoryStore
from solocron.stores.memory_state import Space
from tests.stores.wrong_stores.registry import breaks


@breaks("test_every_client_sees_one_identity")
class NamesItselfAfterItsClient(MemoryStore):
    """Says which client asks instead of which server answers."""

    def identity(self) -> str:
        return f"client-{id(self)}"


@breaks("test_an_open_gate_lets_a_claim_through")
class NeverOpens(MemoryStore):
    """Grants nothing to a claim that names a gate."""

    def _is_open(self, space: Space, session: str | None, gate: Gate | None) -> bool:
        return gate is None


@breaks(
    "test_a_shut_gate_lets_no_claim_through",
    "test_without_a_namespace_the_gate_is_shut",
    "test_a_gate_that_shuts_in_between_stops_the_claim",
)
class IgnoresGates(MemoryStore):
    """Grants every claim of a live session."""

    def _is_open(self, space: Space, session: str | None, gate: Gate | None) -> bool:
        return True


@breaks(
    "test_a_pause_that_the_claim_has_not_considered_shuts_the_gate",
    "test_a_pause_in_between_stops_the_claim",
)
class KnowsNoPauses(MemoryStore):
    """Grants a claim whatever pauses stand."""

    def _is_open(self, space: Space, session: str | None, gate: Gate | None) -> bool:
        return super()._is_open(space, session, None if gate is None else replace(gate, pauses=""))


@breaks("test_a_renewal_counts_for_the_gate")
class IgnoresBeats(MemoryStore):
    """Grants claims to a session that went back."""

    def _is_open(self, space: Space, session: str | None, gate: Gate | None) -> bool:
        return super()._is_open(space, session, None if gate is None else replace(gate, beats=0))


@breaks("test_a_dead_session_is_told_from_a_shut_gate")
class SaysShutForDead(MemoryStore):
    """Tells a dead session that the gate is shut."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        applied = super().update(which, change, session=session, gate=gate)
        return replace(applied, alive=True, shut=True) if not applied.alive else applied


@breaks("test_the_gate_also_tests_the_writes_of_what_it_looks_at")
class GatesJobsAlone(MemoryStore):
    """Tests no gate for writes of a session or of the namespace itself."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        ungated = kind_of(which) in (Kind.SESSION, Kind.NAMESPACE)
        return super().update(which, change, session=session, gate=None if ungated else gate)


@breaks("test_a_session_ends_itself_under_its_own_gate_once")
class CallsItDeadBeforeItEnds(MemoryStore):
    """Tests after the write whether the session lives, so that a session that ended itself looks refused."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        applied = super().update(which, change, session=session, gate=gate)
        if session is None or kind_of(which) is not Kind.SESSION:
            return applied
        found = self.read(Named(Kind.SESSION, (session,)))
        lives = any(isinstance(doc, Session) and doc.state is Life.LIVE for doc in found)
        return replace(applied, alive=applied.alive and lives)


@breaks("test_a_renewal_tells_the_gate_that_stands")
class TellsTheFirstGate(MemoryStore):
    """Tells every renewal the gate that stood when this client first looked."""

    told: tuple[str, str] | None = None

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        applied = super().update(which, change, session=session, gate=gate)
        if applied.gate is None or not applied.gate[0]:
            return applied
        self.told = self.told or applied.gate
        return replace(applied, gate=self.told)


@breaks("test_the_namespace_is_kept_as_it_was_written")
class KeepsTheGateAlone(MemoryStore):
    """Forgets what else stands in the namespace's document."""

    def read(self, which: Which) -> tuple[Doc, ...]:
        return tuple(
            replace(doc, body={"gate": doc.body["gate"]})
            if isinstance(doc, SmallDocument) and "gate" in doc.body
            else doc
            for doc in super().read(which)
        )


@breaks("test_of_many_that_find_no_namespace_one_makes_it")
class FindsNoNamespace(MemoryStore):
    """Every client makes the namespace anew."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        def blind(doc: Any, now: int) -> Change | None:
            return change(Absent(Kind.NAMESPACE, doc.name), now)

        blinded = blind if kind_of(which) is Kind.NAMESPACE else change
        return super().update(which, blinded, session=session, gate=gate)
