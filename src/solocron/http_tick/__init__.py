"""A tick by HTTP, for platforms that scale to zero: one endpoint, under ASGI, WSGI, Django and AWS Lambda."""

from solocron.http_tick.endpoint import TickEndpoint, TickResponse
from solocron.http_tick.proof import oidc, signed

__all__ = ["TickEndpoint", "TickResponse", "oidc", "signed"]
