"""Operate a namespace without running a node: list, trigger, pause, cancel, backfill, add."""

from solocron.client.facade import Client

__all__ = ["Client"]
