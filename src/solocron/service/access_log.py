"""The access log: one line for each request, with the route's template and neither path, query nor token."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from solocron.service.guard import Admission
from solocron.service.request import RequestHead, Response
from solocron.telemetry.log import LINE

__all__ = ["AccessLog"]

log = logging.getLogger("solocron.access")


@dataclass(slots=True)
class _Timed:
    head: RequestHead
    begun: float = field(default_factory=time.monotonic)
    route: str | None = None
    who: str | None = None

    def known(self, admission: Admission) -> None:
        """Note the route and the caller, once they are known."""
        self.route = admission.route.path
        self.who = None if admission.caller is None else admission.caller.identity.name

    def end(self, response: Response) -> None:
        """Write the line."""
        if not log.isEnabledFor(logging.INFO):
            return
        method, route = self.head.method[:16], self.route or "-"
        facts = {
            "request": self.head.id,
            "ms": round((time.monotonic() - self.begun) * 1000, 1),
            "who": self.who,
            "address": self.head.address,
        }
        told = " ".join(f"{name}={value}" for name, value in facts.items() if value is not None)
        extra = facts | {"method": method, "route": route, "status": response.status}
        log.info(LINE, f"{method} {route} {response.status}", told, extra=extra)


class AccessLog:
    """Makes the line of each request."""

    def begin(self, head: RequestHead) -> _Timed:
        """Begin to measure a request."""
        return _Timed(head)
