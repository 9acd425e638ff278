"""Operates a namespace without running a node: lists, triggers, pauses, cancels, adds. Every change is a model's."""

from solocron.client.adding import Client

__all__ = ["Client"]
