"""The frame around every page: sections, store, the reader's identity, the store's clock, the state of the data."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from solocron.service.pages.links import Links
from solocron.service.pages.parts import Choices
from solocron.service.pages.words import Reading

__all__ = ["Frame", "Section", "sections"]

_SECTIONS = (
    ("overview", "Overview", "/", "home"),
    ("jobs", "Jobs", "/jobs", "jobs"),
    ("runs", "Runs", "/runs", "runs"),
    ("nodes", "Nodes", "/nodes", "node"),
    ("alarms", "Alarms", "/alarms", "bell"),
)
_SHARED = (
    ("limits", "Limits", "/limits", "limit"),
    ("locks", "Locks", "/locks", "lock"),
    ("calendars", "Calendars", "/calendars", "cal"),
    ("audit", "Audit", "/audit", "log"),
    ("doctor", "Doctor", "/doctor", "pulse"),
    ("explain", "Explain", "/explain", "clock"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the navigation, with the number beside it."""

    key: str
    label: str
    href: str
    icon: str
    count: int | None = None
    hot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything around the content of a page."""

    links: Links
    reading: Reading
    namespace: str
    namespaces: Choices | None = None
    """Those between which the reader may choose, if there are several."""
    store: str
    """Kind of the store: PostgreSQL, SQLite, ..."""
    tier: str
    place: str
    """Where it is, without password."""
    round_trip_ms: float | None
    release: str
    who: str
    role: str
    csrf: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    """Number beside a section, by its key."""
    live: str = "asks every 5 s"
    zones: Choices | None = None
    done: str = ""
    """What was just done, if the page follows an act."""
    undo: str = ""
    """Address of the act that takes it back."""
    topics: str = ""
    """Topics of the stream on which the page shows something."""
    streams: bool = True
    """False if there is no stream: the page asks again every few seconds."""

    def command(self, *words: str) -> str:
        """Return a command line that asks the same namespace; the store is that of the reader's environment."""
        named = () if self.namespace in ("", "default") else ("--namespace", self.namespace)
        return shlex.join(("solocron", *words, *named))

    @property
    def operates(self) -> bool:
        """True if the reader may act."""
        return self.role == "operate"

    @property
    def main(self) -> tuple[Section, ...]:
        """The sections above."""
        return sections(self.links, self.counts, _SECTIONS)

    @property
    def shared(self) -> tuple[Section, ...]:
        """The sections of shared things."""
        return sections(self.links, self.counts, _SHARED)


def sections(links: Links, counts: dict[str, int], table: tuple[tuple[str, str, str, str], ...]) -> tuple[Section, ...]:
    """Return sections with their addresses and numbers; open alarms stand out."""
    return tuple(
        Section(
            key=key,
            label=label,
            href=links.to(path),
            icon=icon,
            count=counts.get(key),
            hot=key == "alarms" and bool(counts.get(key)),
        )
        for key, label, path, icon in table
    )
