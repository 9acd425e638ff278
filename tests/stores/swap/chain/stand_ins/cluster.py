"""A stand-in for the API of Kubernetes, as far as ConfigMaps of one namespace go."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.stores.swap.chain.stand_ins import Handler, Reply, StandIn

__all__ = ["TOKEN", "ClusterStandIn"]

TOKEN = "c4n4ry-p4ss"
_MOST = 1_048_576


def status(code: int, message: str) -> Reply:
    return code, json.dumps({"kind": "Status", "message": message}).encode()


class _Handler(Handler):
    server: ClusterStandIn

    def serve(self, path: str, query: dict[str, str], body: bytes) -> Reply | None:
        told = self.headers.get("Authorization")
        if told != f"Bearer {TOKEN}":
            return status(401, "Unauthorized")
        if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            about = json.loads(body)["spec"]["resourceAttributes"]
            assert (about["namespace"], about["resource"]) == ("jobs", "configmaps")
            return 201, json.dumps({"status": {"allowed": about["verb"] not in self.server.forbidden}}).encode()
        if not path.startswith("/api/v1/namespaces/jobs/configmaps"):
            return status(403, "configmaps is forbidden in the namespace")
        name = path.removeprefix("/api/v1/namespaces/jobs/configmaps").strip("/")
        if self.command == "POST":
            return self._create(body)
        if self.command == "DELETE":
            self.server.delete(self.server.chained(name))
            return status(200, "deleted")
        if not name:
            return self._listing(query)
        found = self.server.objects.get(self.server.chained(name))
        return status(404, f'configmaps "{name}" not found') if found is None else (200, found)

    def _create(self, body: bytes) -> Reply | None:
        made = json.loads(body)
        name = made["metadata"]["name"]
        sound = re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)
        if not sound or len(name) > 253 or any(len(one) > 63 for one in made["metadata"]["labels"].values()):
            return status(422, f"{name} is not a name")
        if sum(map(len, made["data"].values())) > _MOST:
            return status(422, "Too long: must have at most 1048576 bytes")
        own = made["metadata"]["annotations"]["solocron-name"]
        self.server.named[name] = own
        return self.server.create(own, body, status(409, f'configmaps "{name}" already exists'), (201, body))

    def _listing(self, query: dict[str, str]) -> Reply:
        label, _, value = query["labelSelector"].partition("=")
        assert "PartialObjectMetadataList" in self.headers["Accept"], "contents are not listed"
        most, after = int(query["limit"]), query.get("continue", "")
        found = [json.loads(content)["metadata"] for content in list(self.server.objects.values())]
        found = [one for one in found if one["labels"].get(label) == value and one["name"] > after]
        found.sort(key=lambda one: str(one["name"]))
        more = {"continue": found[most - 1]["name"]} if len(found) > most else {}
        return 200, json.dumps({"metadata": more, "items": [{"metadata": one} for one in found[:most]]}).encode()


class ClusterStandIn(StandIn):
    """One cluster with a namespace `jobs`."""

    def __init__(self, *, ignores_conditions: bool = False) -> None:
        self.named: dict[str, str] = {}
        """The chain's name of each object."""
        self.forbidden: set[str] = set()
        """Verbs that a review denies."""
        super().__init__(_Handler, ignores_conditions=ignores_conditions)

    def chained(self, name: str) -> str:
        return self.named.get(name, name)

    def url(self, folder: Path, *, token: str = TOKEN) -> str:
        file = folder / f"token-{token}"
        file.write_text(token)
        return f"kubernetes://jobs/solocron?endpoint={self.endpoint}&token_file={file}"
