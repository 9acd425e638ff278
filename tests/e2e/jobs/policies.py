"""One job for each way to catch up, each every half second, over at once."""

from __future__ import annotations

from solocron import Run, catch_up_all, every
from solocron.model.policy import CatchUp
from solocron.testing.fleet import witness

POLICIES: dict[str, CatchUp | str] = {
    "skip": "skip",
    "latest": "latest",
    "all": "all",
    "three": catch_up_all(limit=3),
    "recent": catch_up_all(within="2500ms"),
}


def _make(name: str, policy: CatchUp | str) -> object:
    @every("500ms", name=name, retries=3, overlap="queue-all", catch_up=policy)
    def body(run: Run) -> None:
        with witness(run):
            pass

    return body


for _name, _policy in POLICIES.items():
    globals()[_name] = _make(_name, _policy)
