"""The HTTP service: one table of routes behind a guard, as ASGI and WSGI applications.

`scheduler.asgi()` and `scheduler.wsgi()` make one. `Identity` and `Role` are what an `auth=` of yours returns, `Oidc`
says whose tokens may tick.
"""

from solocron.service.oidc import Oidc
from solocron.service.roles import Identity, Role

__all__ = ["Identity", "Oidc", "Role"]
