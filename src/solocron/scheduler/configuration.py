"""The options of a scheduler, checked once. Nothing is opened or started here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from solocron import surroundings
from solocron.duration import parse_duration
from solocron.engine.settings import Settings
from solocron.errors import ConfigurationError
from solocron.jobs.checks import check_name, check_names
from solocron.jobs.options import Span
from solocron.model.policy import whole
from solocron.stores.contract import Store
from solocron.stores.url import Secret, url_of_environment
from solocron.version import __version__

__all__ = ["Configuration", "SchedulerOptions", "keep_on"]

_NOTHING = "Nothing was started."


class SchedulerOptions(TypedDict, total=False):
    """The options of `Scheduler`, for the integrations that pass them on."""

    store: str | Secret | Store | None
    namespace: str | None
    pools: Iterable[str]
    node: str | None
    enabled: bool | None
    lease: Span
    beat: Span | None
    max_running: int
    revision: int | None
    keep: Span | None
    grace: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The place of the store, and the settings of the node that a scheduler may start."""

    store: Secret | Store
    """A URL, or a store that the caller made."""
    store_named: bool
    """True if code, environment or command line named a store; else it is a file in the current folder."""
    keep_named: bool
    """True if the code says how long records are kept; else it follows from the store."""
    namespace: str
    enabled: bool
    node: str | None
    """The name that was given; None: each process gets a new one."""
    grace: float
    """Seconds that runs may take to end at a stop that names no other time."""
    settings: Settings

    @classmethod
    def make(
        cls,
        store: str | Secret | Store | None = None,
        *,
        namespace: str | None = None,
        pools: Iterable[str] = ("default",),
        node: str | None = None,
        enabled: bool | None = None,
        lease: Span = "15s",
        beat: Span | None = None,
        max_running: int = 32,
        revision: int | None = None,
        keep: Span | None = None,
        grace: Span = "30s",
    ) -> Configuration:
        """Check the options of `Scheduler` and complete them from the environment."""
        if revision is not None and not whole(revision):
            raise ConfigurationError(f"revision={revision!r}: give a whole number. {_NOTHING}")
        named = url_of_environment() if store is None else store
        place = surroundings.DEFAULT_STORE if named is None else named
        there = Secret(place) if isinstance(place, str) else place
        return cls(
            store=there,
            store_named=named is not None,
            keep_named=keep is not None,
            namespace=check_name(surroundings.namespace() if namespace is None else namespace, "namespace"),
            enabled=surroundings.enabled() if enabled is None else enabled,
            node=None if node is None else check_name(node, "node"),
            grace=parse_duration(grace, what="grace").total_seconds(),
            settings=Settings.make(
                node="",
                host=os.uname().nodename,
                pid=0,
                pools=tuple(check_name(pool, "pool") for pool in check_names(pools, "pools", untouched=_NOTHING)),
                lease=lease,
                beat=beat,
                max_running=max_running,
                keep=keep_on(there) if keep is None else keep,
                revision=revision,
                version=__version__,
            ),
        )

    @property
    def store_url(self) -> str:
        """The URL of the store as people may see it."""
        return _shown(self.store)

    def settings_of(self, process: int, token: str) -> Settings:
        """Return the settings of the node in a process; without a given name it is a new one."""
        name = self.node or surroundings.node_name(self.settings.host, process, token)
        return self.settings.renamed(name, process)


def keep_on(store: Secret | Store) -> str:
    """Return how long records are kept by default: on etcd a month of them may fill the quota of the cluster."""
    return "7d" if _shown(store).startswith(("etcd://", "etcds://")) else "30d"


def _shown(store: Secret | Store) -> str:
    return store.masked if isinstance(store, Secret) else store.url
