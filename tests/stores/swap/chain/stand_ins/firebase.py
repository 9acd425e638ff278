"""A stand-in for the REST interface of Firebase Realtime Database."""

from __future__ import annotations

import json

from tests.stores.swap.chain.stand_ins import Handler, Reply, StandIn

__all__ = ["SECRET", "FirebaseStandIn"]

SECRET = "c4n4ry-p4ss"


class _Handler(Handler):
    server: FirebaseStandIn

    def serve(self, path: str, query: dict[str, str], body: bytes) -> Reply | None:
        if "auth" not in query and not self.server.open_to_all:
            return 401, b'{"error": "Permission denied"}'
        if query.get("auth", SECRET) != SECRET:
            return 401, b'{"error": "Could not parse auth token."}'
        assert path.endswith(".json")
        name = path.removesuffix(".json").strip("/")
        assert not set(name) & set(".$#[]"), "no key of Firebase has those"
        if self.command == "PUT":
            assert self.headers.get("if-match") == "null_etag", "nothing is written without the condition"
            taken = (412, self.server.objects.get(name, b"null"))
            return self.server.create(name, body, taken, (200, body))
        if self.command == "DELETE":
            self.server.delete(name)
            return 200, b"null"
        if query.get("shallow") == "true":
            below = [one.removeprefix(f"{name}/") for one in list(self.server.objects) if one.startswith(f"{name}/")]
            return 200, json.dumps({one.partition("/")[0]: True for one in below} or None).encode()
        return 200, self.server.objects.get(name, b"null")


class FirebaseStandIn(StandIn):
    """One database."""

    def __init__(self, *, ignores_conditions: bool = False) -> None:
        self.open_to_all = False
        """Whether the rules let strangers in."""
        super().__init__(_Handler, ignores_conditions=ignores_conditions)

    def url(self, *, secret: str = SECRET) -> str:
        return f"firebase://secret:{secret}@project.region/f?endpoint={self.endpoint}"
