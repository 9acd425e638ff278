"""Every address of the dashboard, made in one place from names that are percent-encoded."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

__all__ = ["Links"]


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses below a base path, which is empty or begins with a slash and does not end with one."""

    base: str = ""
    static_hash: str = "0"

    def to(self, path: str, **query: str | int | None) -> str:
        """Return the address of a page; parameters that are None or empty are left out."""
        asked = urlencode({name: value for name, value in query.items() if value not in (None, "")})
        return f"{self.base}{path}" + (f"?{asked}" if asked else "")

    def static(self, file: str) -> str:
        """Return the address of a static file, which changes with its content."""
        return f"{self.base}/static/{self.static_hash}/{file}"

    def overview(self, **query: str | int | None) -> str:
        """Return the address of the overview."""
        return self.to("/", **query)

    def jobs(self, **query: str | int | None) -> str:
        """Return the address of the list of jobs."""
        return self.to("/jobs", **query)

    def job(self, name: str, act: str = "", **query: str | int | None) -> str:
        """Return the address of a job, or of an act on it."""
        return self.to(f"/jobs/{_part(name)}" + (f"/{act}" if act else ""), **query)

    def runs(self, **query: str | int | None) -> str:
        """Return the address of the list of runs."""
        return self.to("/runs", **query)

    def run(self, run: str, act: str = "", **query: str | int | None) -> str:
        """Return the address of a run, or of an act on it."""
        return self.to(f"/runs/{_part(run)}" + (f"/{act}" if act else ""), **query)

    def nodes(self, **query: str | int | None) -> str:
        """Return the address of the list of nodes."""
        return self.to("/nodes", **query)

    def node(self, session: str) -> str:
        """Return the address of a node's session."""
        return self.to(f"/nodes/{_part(session)}")

    def lock(self, name: str, act: str = "") -> str:
        """Return the address of a lock, or of an act on it."""
        return self.to(f"/locks/{_part(name)}" + (f"/{act}" if act else ""))

    def calendar(self, name: str) -> str:
        """Return the address of a calendar."""
        return self.to(f"/calendars/{_part(name)}")


def _part(name: str) -> str:
    return quote(name, safe="@:.-_")
