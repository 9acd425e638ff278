"""Flags of `run` and `tick` that override the configuration of a module's own Scheduler."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace
from typing import Any

from solocron.cli.arguments import listed
from solocron.clock import SECOND
from solocron.engine.settings import Settings
from solocron.errors import InvalidError
from solocron.jobs.checks import check_name
from solocron.lease.terms import Span
from solocron.scheduler import Scheduler
from solocron.scheduler.configuration import Configuration, keep_on
from solocron.scheduler.hooks import core_of
from solocron.stores.url import Secret

__all__ = ["Overrides"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """The flags of the command line; None for those that were not given."""

    store: str | None = None
    namespace: str | None = None
    pools: tuple[str, ...] | None = None
    lease: str | None = None
    max_running: int | None = None
    node: str | None = None

    def __post_init__(self) -> None:
        listed("--pools", self.pools)

    @classmethod
    def of(cls, args: Namespace) -> Overrides:
        return cls(**{name: getattr(args, name) for name in cls.__slots__})

    def make(self) -> Scheduler:
        """Return a scheduler for a module that has none."""
        options: dict[str, Any] = {
            name: getattr(self, name) for name in self.__slots__ if name != "store" and getattr(self, name) is not None
        }
        return Scheduler(self.store, **options)

    def apply(self, scheduler: Scheduler, target: str) -> None:
        """Change a scheduler in place before it starts, so that the module's own references see the change."""
        core = core_of(scheduler)
        old = core.configuration
        node = check_name(self.node, "node") if self.node else old.node
        keep = old.settings.keep / SECOND if old.keep_named or not self.store else keep_on(Secret(self.store))
        new = replace(old, node=node, settings=self._settings(old.settings, keep))
        if self.store or self.namespace or self.lease:
            named = old.store_named or self.store is not None
            new = replace(
                new, store=self._url(old, target), store_named=named, namespace=self.namespace or old.namespace
            )
        core.configure(new)

    def _settings(self, old: Settings, keep: Span) -> Settings:
        return Settings.make(
            node=old.node,
            host=old.host,
            pid=old.pid,
            pools=tuple(check_name(pool, "pool") for pool in self.pools) if self.pools else tuple(sorted(old.pools)),
            lease=self.lease or old.lease,
            beat=None if self.lease else old.beat,
            max_running=self.max_running or old.max_running,
            keep=keep,
            revision=old.revision,
            version=old.version,
        )

    def _url(self, old: Configuration, target: str) -> Secret:
        """Return the URL to make the store from: namespace and lease are fixed when it is made."""
        if self.store is not None:
            return Secret(self.store)
        if isinstance(old.store, Secret):
            return old.store
        flag = "--namespace" if self.namespace else "--lease"
        raise InvalidError(
            f"{target} makes its own store ({old.store_url}), so {flag} alone cannot change it; nothing was started. "
            "Give --store as well, or change it in the code."
        )
