"""Hand-over to other processes: carriers on the side of the node, `carry_out` on the side of the worker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from solocron import surroundings
from solocron.dispatch.carrier import FOREIGN_REMEDY, Carriage, Carrier, Forward, Forwards, Message, foreign
from solocron.dispatch.contract import Dispatcher
from solocron.duration import parse_duration, to_us
from solocron.engine.node import Node
from solocron.errors import ConfigurationError, InvalidError
from solocron.jobs.checks import check_name
from solocron.jobs.declaration import Declaration
from solocron.jobs.forwarded import Forwarded, check_target, refuse_own_end
from solocron.jobs.options import PLACES, AddOptions, Span
from solocron.jobs.registry import Declared, Registry
from solocron.model.documents.definition import TARGET
from solocron.patched import check_threads
from solocron.scheduler.core import Core
from solocron.scheduler.guest import Guest
from solocron.scheduler.inline import Here
from solocron.scheduler.locks import LockRoom
from solocron.scheduler.starting import refuse_store_per_replica
from solocron.schedules import Schedule
from solocron.stores.url import Secret
from solocron.views import RunView

__all__ = ["CarryingOperations", "refuse_unknown_carriers"]


class CarryingOperations:
    """The methods of `Scheduler` for runs that other processes carry out."""

    _core: Core
    _locks: LockRoom
    registry: Registry
    _guest: Guest | None = None

    def carrier(
        self,
        name: str,
        carrier: Carrier | Callable[[Message], object],
        *,
        pickup: Span = "5m",
        follows: bool | None = None,
    ) -> None:
        """Name a carrier, for jobs that say `run_in=name`: their runs are handed over instead of run on a node.

        A plain function of the message is a carrier too. It forwards, and its return is the outcome; with
        `follows=True` a Solocron on the other side picks the run up with `carry_out`. `pickup` is how long a message is
        awaited before it is published again.
        """
        core = self._core
        check_name(name, "carrier")
        if name in PLACES or name in core.carriers:
            what = "is a place of its own" if name in PLACES else "is named already"
            raise InvalidError(f"carrier={name!r} {what}; nothing was named. Choose another name.")
        if core.alive:
            raise InvalidError(f"carrier={name!r}: this scheduler runs already, so nothing was named; name it before.")
        if not callable(getattr(carrier, "publish", None)):
            if not callable(carrier):
                raise InvalidError(
                    f"carrier={name!r}: {carrier!r:.80} has no publish(message) and is not a function of it; nothing "
                    "was named."
                )
            carrier = Forward(carrier, follows=bool(follows))
        elif follows is not None and follows != carrier.follows:  # type: ignore[union-attr]
            raise InvalidError(
                f"carrier={name!r}: {type(carrier).__name__} says itself whether workers pick up; nothing was named. "
                "Leave follows= out."
            )
        us = to_us(parse_duration(pickup, what="pickup"))
        if us <= 0:
            raise InvalidError(f"pickup={pickup!r}: give a time above zero; nothing was named.")
        made = Carriage(name=name, carrier=carrier, pickup=us)  # type: ignore[arg-type]
        if made.follows:
            self._refuse_own_store(name)
        core.carriers[name] = made
        attach = getattr(carrier, "attach", None)
        if attach is not None:
            attach(core.store.namespace, self)

    def forward(
        self, name: str, carrier: str, target: str, schedule: str | Schedule, **options: Unpack[AddOptions]
    ) -> None:
        """Declare a job without a function here: each slot is sent to a target that the carrier's other side knows.

        The run is over, as `handed_over`, when the carrier has accepted it. The payload becomes what the target is
        called with: keyword arguments, where it is a task.
        """
        check_name(name)
        check_name(carrier, "carrier")
        check_target(target, name)
        refuse_own_end(name, options)
        options["hand_over"] = {**(options.get("hand_over") or {}), TARGET: target}
        options["run_in"] = carrier
        module = sys._getframe(1).f_globals.get("__name__", "__main__")
        declaration = Declaration.make(schedule, options, name=name)
        declared = self.registry.add(Forwarded(name, target, module), declaration)
        if declared is not None:
            self._registered(declared)

    def _registered(self, declared: Declared) -> None:
        raise NotImplementedError

    def _refuse_own_store(self, name: str) -> None:
        """Refuse a store that no worker can open."""
        place = self._core.configuration.store
        if not isinstance(place, Secret) or not self._core.store.capabilities.shared:
            raise ConfigurationError(
                f"carrier={name!r}: its workers open the store by themselves, and they cannot open this one. Nothing "
                "was named; give Scheduler(...) the URL of a store that all processes share."
            )

    def carry_out(self, message: Message | Mapping[str, Any] | str | bytes) -> RunView | None:
        """Carry out the run of a message, on the worker's side of any queue; return when its outcome is in the store.

        The body runs under a session and a fence of this process, on the calling thread; with `aio` a coroutine runs on
        the event loop, and a function on a thread beside it. None if the message starts nothing: it is a copy, too
        late, or not for now. `StoreUnavailable` if nothing was picked up: let the queue deliver it again.
        """
        return self._carry_out(Message.read(message), Here.on_thread())

    def _carry_out(self, message: Message, here: Here | None) -> RunView | None:
        core = self._core
        surroundings.refuse_node(passing=True)
        check_threads(passing=True)
        refuse_store_per_replica(core)
        core.open()
        if message.namespace != core.store.namespace:
            core.message_dropped(message, foreign(message.namespace, [core.store.namespace]), FOREIGN_REMEDY)
            return None
        if self._guest is None:
            self._guest = Guest(core, self._make_guest)
        if core.tracing is not None:
            core.tracing.arrived(message)
        try:
            hold = self._guest.carry_out(message, here)
        finally:
            if here is not None:
                here.close()
        if hold is None:
            return None
        return next((view for view in core.client.attempts(hold.run) if view.attempt == hold.attempt), None)

    def _end_guest(self) -> None:
        """End the session of this process's guest: the process itself is about to end."""
        if self._guest is not None:
            self._guest.close(self._core.configuration.grace)

    def _make_guest(self, dispatchers: dict[str, Dispatcher]) -> Node:
        return self._core.make_guest(self._locks.make_verbs, dispatchers)


def refuse_unknown_carriers(core: Core) -> None:
    """Refuse a job whose carrier was not named: it would wait for good."""
    for name, declared in core.registry.jobs.items():
        options = declared.options
        if options.hand_over is None:
            continue
        carriage = core.carriers.get(options.run_in)
        if carriage is None:
            known = ", ".join(sorted(core.carriers)) or "none"
            raise ConfigurationError(
                f"{name} says run_in={options.run_in!r}, which is neither a place nor the name of a carrier (known: "
                f"{known}). Nothing was started; name it with scheduler.carrier({options.run_in!r}, ...)."
            )
        if options.target is not None and carriage.follows and not isinstance(carriage.carrier, Forwards):
            raise ConfigurationError(
                f"{name} is forwarded to {options.target!r}, and the carrier {carriage.name!r} has no "
                "forward(message): its workers pick runs up. Nothing was started; name a function as the carrier, or "
                "declare a function."
            )
        for what, value in (("memory", options.memory), ("cpu", options.cpu)):
            if value is not None and not getattr(carriage.carrier, "keeps_limits", False):
                raise ConfigurationError(
                    f"{name} has {what}={value}, and the workers behind {carriage.name!r} cannot keep to it. Nothing "
                    "was started; bound the workers instead."
                )
        check = getattr(carriage.carrier, "check", None)
        if check is not None:
            try:
                check({option: value for option, value in options.hand_over.items() if option != TARGET})
            except InvalidError as error:
                raise InvalidError(f"{name}: {error}") from None
