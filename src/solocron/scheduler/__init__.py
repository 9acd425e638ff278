"""The public front: `Scheduler`, and `AsyncScheduler` behind `scheduler.aio`."""

from solocron.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]
