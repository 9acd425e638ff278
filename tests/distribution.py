"""Which worker runs which test: a file is one piece of work, so that what its tests share is made once.

Fixtures of a module, tables that are computed once per process, the server that a file needs: spread over all workers,
each worker would make its own. Tests of real processes wait more than they compute, and some take half a minute; each
is a piece by itself, and they come first, so that no worker is left alone with one at the end. The files of a server
that takes ten seconds to start are one piece, and so are those of the browser and the fleet that it looks at.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

__all__ = ["ByFile"]

APART = ("tests/chaos/", "tests/e2e/")
TOGETHER = ("tests/browser/", "tests/stores/swap/dynamodb/", "tests/stores/swap/zookeeper/")


class ByFile(LoadScopeScheduling):  # type: ignore[misc] # xdist ships no types
    """Hands out files in the order of collection, the tests of `APART` one by one, a folder of `TOGETHER` whole."""

    def _split_scope(self, nodeid: str) -> str:
        for folder in TOGETHER:
            if nodeid.startswith(folder):
                return folder
        return nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0]
