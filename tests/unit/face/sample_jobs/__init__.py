"""A package of jobs as an application would have them."""

from solocron import cron, every


@cron("0 9 * * MON-FRI", tz="Europe/Paris", name="send-digest")
def send_digest() -> None:
    """Takes no run."""


@every("30s")
async def poll(run: object) -> None:
    """A coroutine."""


def helper() -> None:
    """Not a job."""
