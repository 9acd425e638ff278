"""Finding definitions: in modules and packages, and on instances."""

from solocron.jobs.discovery.find import discover

__all__ = ["discover"]
