"""The command line. Edges are thin: parse, call the client, render; nothing is decided here."""

from solocron.cli.entry import main

__all__ = ["main"]
