"""The alert rules for Prometheus, as they come with the package."""

from __future__ import annotations

import solocron.telemetry  # noqa: F401 - its loader reads the file
from solocron.packaged import packaged_text

__all__ = ["RUNBOOKS", "alert_rules"]

RUNBOOKS = "docs/how-to/monitor.md"
"""The page that the rules name, as a path of this documentation."""


def alert_rules(docs: str | None = None) -> str:
    """Return the rules as YAML; `docs` is the address under which this documentation is kept."""
    text = packaged_text("solocron.telemetry", "assets", "alerts.yml")
    if docs is None:
        return text
    return text.replace(f"runbook_url: {RUNBOOKS}", f"runbook_url: {docs.rstrip('/')}/{RUNBOOKS.removeprefix('docs/')}")
