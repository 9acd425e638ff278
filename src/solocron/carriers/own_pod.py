"""The carrier of a Pod that a CronJob started: its own process picks up what it would have handed over to a Job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from solocron.carriers.kubernetes import KubernetesCarrier
from solocron.dispatch.carrier import Message, NotAccepted
from solocron.kubernetes.pod import check_pod_options
from solocron.scheduler import Scheduler
from solocron.scheduler.hooks import core_of

__all__ = ["OwnPod"]


class OwnPod:
    """Carries messages out where they are published: the Pod has the machine and the limits of its job already.

    The body has the session of a guest, as in the Pod of a Job. The node beside it claims, and waits meanwhile.
    """

    follows = True
    keeps_limits = True

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._stopping = False

    @classmethod
    def instead_of_jobs(cls, scheduler: Scheduler) -> OwnPod:
        """Put it in the place of each carrier of a scheduler that creates Jobs; return it."""
        made, carriers = cls(scheduler), core_of(scheduler).carriers
        for name, carriage in carriers.items():
            if isinstance(carriage.carrier, KubernetesCarrier):
                carriers[name] = replace(carriage, carrier=made)
        return made

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse `hand_over` options that a Pod does not have."""
        check_pod_options(options, "Nothing was started.")

    def publish(self, message: Message) -> None:
        """Carry the run out; return when its outcome is in the store."""
        if self._stopping:
            raise NotAccepted("its Pod is told to stop")
        if self._scheduler.carry_out(message) is None:
            raise NotAccepted("its Pod could not pick it up")

    def stop(self, grace: float | None) -> None:
        """Let the body end within the grace, then the scheduler: that would stop the publication around the body."""
        self._stopping = True
        guest = self._scheduler._guest
        if guest is not None:
            guest.close(core_of(self._scheduler).configuration.grace if grace is None else grace)
        self._scheduler.stop(grace)

    def close(self) -> None:
        """Do nothing: the scheduler ends the session of the guest."""
