"""`HealthView`: whether a node is alive, whether it would claim now, and why not. Made and judged without the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["GONE", "HealthView", "aged", "judge"]

GONE = "its process is gone"

_PATIENCE = 5.0
"""Seconds that a node with a very short lease may be silent: less would report a busy machine."""
_SHORT_STEPS = ("keeper", "watchdog", "claimer", "finisher")
"""Loops whose steps are short by design. The others wait for changes or work through old records."""
_LONGEST_STEP = 30.0
"""Seconds beyond two leases that such a step may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthView:
    """The health of one node as the node itself sees it, or as its file says."""

    node: str
    namespace: str
    host: str
    pid: int
    alive: bool
    """False if only a restart helps: frozen, gone, a loop that is dead or stuck, an event loop that is blocked."""
    ready: bool
    """True if it is alive, holds a session that it can trust, and may claim."""
    why: tuple[str, ...]
    """What is wrong; empty if it is alive and ready."""
    session: str | None
    trusted_for_s: float | None
    """Seconds for which it can still trust its session; None without one."""
    store_answers: bool
    """True if the store acknowledged the last renewal."""
    loops: Mapping[str, float | None]
    """Seconds that each loop has spent in its present step, 0 between two; None if its thread is gone."""
    event_loop_lag_s: float | None
    """Seconds for which the event loop of coroutine jobs has not responded; None if the node uses none."""
    blocked_by: str | None
    """The run that blocks the event loop, where that is known."""
    running: int
    draining: bool
    lease_s: float
    age_s: float
    """Seconds since the node wrote this; 0 in its own process."""


def judge(view: HealthView) -> HealthView:
    """Return the view with its verdict: not alive is for what a restart cures, not ready for what time does."""
    dead = [f"its loop {name} is gone" for name, took in view.loops.items() if took is None]
    for name in _SHORT_STEPS:
        took = view.loops.get(name) or 0.0
        # The first registration of very many jobs is one long step of the keeper, which renews in the middle of it.
        trusted = name == "keeper" and (view.trusted_for_s or 0.0) > 0.0
        if took > 2 * view.lease_s + _LONGEST_STEP and not trusted:
            dead.append(f"its loop {name} has been in one step for {took:.0f} s")
    lag = view.event_loop_lag_s or 0.0
    if lag > _longest_silence(view):
        dead.append(f"its event loop has been blocked for {lag:.0f} s{_by(view.blocked_by)}")
    waiting = []
    if view.draining:
        waiting.append("it drains")
    if view.session is None:
        waiting.append("it has no session" + ("" if view.store_answers else ", and the store does not answer"))
    elif not view.store_answers or not view.trusted_for_s or view.trusted_for_s <= 0.0:
        waiting.append("its session could not be renewed")
    return replace(view, alive=not dead, ready=not dead and not waiting, why=(*dead, *waiting))


def aged(view: HealthView, age: float, *, gone: bool) -> HealthView:
    """Return the view of a file that was written `age` seconds ago; `gone`: no such process exists any more."""
    view = replace(view, age_s=age)
    if gone:
        why = GONE
    elif not 0.0 <= age <= _longest_silence(view):
        why = f"it has written nothing for {age:.0f} s" if age >= 0.0 else "its file is older than this machine's start"
    else:
        return view
    return replace(view, alive=False, ready=False, why=(why, *view.why))


def _longest_silence(view: HealthView) -> float:
    return max(view.lease_s, _PATIENCE)


def _by(run: str | None) -> str:
    return "" if run is None else f" by {run}"
