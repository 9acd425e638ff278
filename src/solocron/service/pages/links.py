"""Every address of the dashboard, made in one place from names that are percent-encoded."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

__all__ = ["Asked", "Links"]

Asked = str | int | tuple[str, ...] | None
"""The value of a parameter; a tuple gives it several times."""


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses below a base path, which is empty or begins with a slash and does not end with one."""

    base: str = ""
    static_hash: str = "0"
    tz: str = ""
    """The zone that the reader chose; every address of a page keeps it."""

    def to(self, path: str, **query: Asked) -> str:
        """Return the address of a page; parameters that are None or empty are left out."""
        given = {"tz": self.tz} | query
        asked = urlencode({name: value for name, value in given.items() if value not in (None, "", ())}, doseq=True)
        return f"{self.base}{path}" + (f"?{asked}" if asked else "")

    def api(self, path: str) -> str:
        """Return where the API tells the same as a page."""
        return f"{self.base}/api/v1{quote(path, safe='/@:.-_')}"

    def static(self, file: str) -> str:
        """Return the address of a static file, which changes with its content."""
        return f"{self.base}/static/{self.static_hash}/{file}"

    def overview(self, **query: Asked) -> str:
        """Return the address of the overview."""
        return self.to("/", **query)

    def jobs(self, **query: Asked) -> str:
        """Return the address of the list of jobs."""
        return self.to("/jobs", **query)

    def job(self, name: str, act: str = "", **query: Asked) -> str:
        """Return the address of a job, or of an act on it."""
        return self.to(f"/jobs/{_part(name)}" + (f"/{act}" if act else ""), **query)

    def runs(self, **query: Asked) -> str:
        """Return the address of the list of runs."""
        return self.to("/runs", **query)

    def run(self, run: str, act: str = "", **query: Asked) -> str:
        """Return the address of a run, or of an act on it."""
        return self.to(f"/runs/{_part(run)}" + (f"/{act}" if act else ""), **query)

    def nodes(self, **query: Asked) -> str:
        """Return the address of the list of nodes."""
        return self.to("/nodes", **query)

    def node(self, session: str) -> str:
        """Return the address of a node's session."""
        return self.to(f"/nodes/{_part(session)}")

    def lock(self, name: str, act: str = "") -> str:
        """Return the address of a lock, or of an act on it."""
        return self.to(f"/locks/{_part(name)}" + (f"/{act}" if act else ""))

    def set_aside(self, kind: str, document: str) -> str:
        """Return where a document that was set aside is let take part again."""
        return self.to(f"/set-aside/{_part(kind)}/{_part(document)}/unblock")

    def found(self, name: str) -> str:
        """Return where a name of unknown kind is looked for: a job, a run, a node or a lock."""
        return self.to("/find", q=name)

    def calendar(self, name: str) -> str:
        """Return the address of a calendar."""
        return self.to(f"/calendars/{_part(name)}")


def _part(name: str) -> str:
    return quote(name, safe="@:.-_")
