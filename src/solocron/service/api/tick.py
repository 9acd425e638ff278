"""`/tick`: one pass, for a platform that wakes the application from outside."""

from __future__ import annotations

from solocron.service.call import Answer, ApiCall
from solocron.service.ticking import TickAnswer

__all__ = ["tick"]


def tick(call: ApiCall) -> Answer[TickAnswer]:
    """Run what is due now; 200 when the pass is done, also if runs failed."""
    assert call.ticking is not None
    answer = call.ticking.run(wait=call.given["wait"] == "1")
    if answer.busy:
        return Answer(answer, 202, (("Retry-After", "5"),))
    return Answer(answer, 200 if answer.took_s is not None else 202)
