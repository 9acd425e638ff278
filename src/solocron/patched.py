"""Check at the start of a node that threads are real: gevent and eventlet replace them by greenlets of one thread.

Using the original threads for the engine would not help: the locks of the stores and the sockets of the drivers are
replaced as well, and an original lock that waits for a greenlet of its own thread waits forever.
"""

from __future__ import annotations

import logging
import sys

from solocron.errors import ConfigurationError

__all__ = ["check_threads", "patched_by"]

log = logging.getLogger("solocron")


def patched_by() -> str | None:
    """Return the library that has replaced the threads of this process, or None; imports neither."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        return "gevent"
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None and patcher.is_monkey_patched("thread"):
        return "eventlet"
    return None


_when_imported = patched_by()
"""If patching happens after the import, queues and locks made before stop the whole process when they wait."""


def check_threads(*, passing: bool = False) -> None:
    """Refuse a node that would freeze its process; warn of one whose lease depends on the code beside it.

    A single pass (`passing`) is short and gets no warning.
    """
    library = patched_by()
    if library == "eventlet":
        raise ConfigurationError(
            "eventlet has replaced the threads of this process: a node could freeze it, and not drain at SIGTERM. "
            "Nothing was started; use gunicorn's gthread or gevent workers, or a process of its own: solocron run."
        )
    if library == "gevent" and _when_imported is None:
        raise ConfigurationError(
            "gevent has replaced the threads of this process after Solocron was imported, and a node that waits would "
            "freeze it; nothing was started. Import Solocron after monkey.patch_all(): under gunicorn inside "
            "post_worker_init, not at the top of its configuration."
        )
    if library == "gevent" and not passing:
        log.warning(
            "the threads of this process are greenlets of gevent: code that blocks them costs this node its lease",
            extra={"event": "greenlets"},
        )
