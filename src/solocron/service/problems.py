"""Problems: every refusal as `application/problem+json`, with a text of ours and never one of a driver or a bug."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solocron.errors import SolocronError
from solocron.service.request import PROBLEM, Response
from solocron.service.shown import scrubbed

__all__ = ["FieldFault", "ProblemError", "bug", "problem_of", "render"]

TITLES: Mapping[int, str] = {
    400: "Bad request",
    401: "Not known",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    414: "Path too long",
    415: "Wrong content type",
    421: "Wrong host",
    428: "Key required",
    429: "Too many requests",
    431: "Headers too large",
    500: "Internal error",
    503: "Not available",
    504: "Not in time",
}
_RETRY = ("Retry-After", "5")


@dataclass(frozen=True, slots=True)
class FieldFault:
    """A fault of one parameter: where it is, its name, and what would be right."""

    place: str
    name: str
    message: str


class ProblemError(Exception):
    """A request is refused with this status. Raised by the guard and by handlers; the service renders it."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str | None = None,
        fields: Sequence[FieldFault] = (),
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = scrubbed(detail)
        self.code = code or TITLES[status].title().replace(" ", "")
        self.fields = tuple(fields)
        self.headers = tuple(headers)


def problem_of(error: SolocronError) -> ProblemError:
    """Return the problem that an error of the library is; its message says what was left untouched."""
    headers = [_RETRY] if error.status == 503 else ()
    return ProblemError(error.status, str(error), code=type(error).__name__, headers=headers)


def bug() -> ProblemError:
    """Return the problem for an exception that is not ours: a constant text, because its message may hold anything."""
    return ProblemError(500, "The service has a bug here. The log has its trace under this request's id.")


def render(problem: ProblemError, *, request: str) -> Response:
    """Return a problem as a response; `request` is the id of the request."""
    body: dict[str, object] = {
        "type": f"/errors#{problem.code}",
        "title": TITLES[problem.status],
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "instance": request,
    }
    if problem.fields:
        body["fields"] = [{"in": one.place, "name": one.name, "message": one.message} for one in problem.fields]
    text = json.dumps(body, ensure_ascii=True, allow_nan=False)
    return Response(status=problem.status, body=text.encode(), kind=PROBLEM, headers=problem.headers)
