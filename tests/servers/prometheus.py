"""A private Prometheus: rules, targets and scrape interval as a test wants them. It is no store."""

from __future__ import annotations

import json
import shutil
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tests.servers.base import Server

__all__ = ["Prometheus", "promtool"]


class Prometheus(Server):
    """One server; `settings` are `rules` (a path) and `targets` (addresses, with commas)."""

    name = "prometheus"
    hint = "apt-get install prometheus"

    @classmethod
    def binary(cls) -> Path | None:
        found = shutil.which("prometheus")
        return Path(found) if found else None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fresh_url(self) -> str:
        raise NotImplementedError("it is no store")

    def command(self) -> list[str]:
        program = self.binary()
        assert program is not None, self.hint
        targets = self.settings["targets"].split(",")
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [self.settings["rules"]],
            "scrape_configs": [{"job_name": "solocron", "static_configs": [{"targets": targets}]}],
        }
        (self.folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        return [
            str(program), f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
        ]  # fmt: skip

    def ask(self) -> None:
        self.get("/-/ready")

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Evaluate an expression now; return the samples of its vector."""
        found = json.loads(self.get(f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}"))
        assert found["status"] == "success", found
        result: list[dict[str, Any]] = found["data"]["result"]
        return result

    def firing(self) -> set[tuple[str, str]]:
        """Return the alerts that fire: their names, and the job or pool."""
        found = json.loads(self.get("/api/v1/alerts"))["data"]["alerts"]
        return {
            (one["labels"]["alertname"], one["labels"].get("job_name") or one["labels"].get("pool", ""))
            for one in found
            if one["state"] == "firing"
        }


def promtool() -> str | None:
    """Return the program that checks rules and metrics; it comes with the server."""
    return shutil.which("promtool")
