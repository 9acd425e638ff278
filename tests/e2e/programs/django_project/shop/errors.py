"""The answer to every error of Solocron, as the how-to has it."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse

from solocron import SolocronError


class AnswerErrors:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return JsonResponse({"detail": str(error)}, status=error.status) if isinstance(error, SolocronError) else None
