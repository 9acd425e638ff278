"""Brings the servers and the browser that the tests start for themselves: what is missing is installed where this user
may.

    servers.py [postgres] [mariadb] [redis] [valkey] [etcd] [nats] [zookeeper] [dynamodb] [rabbitmq]
               [chromium] [prometheus]   all of these without a name; [mongodb] [azurite] only if they are named

Nothing is started here, and no system service is left running: the tests start private instances. Where
nothing can be installed it says what to do; the tests of that store are then skipped, or fail under CI.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import debian
import npm

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.servers import INSTALLED, OPTIONAL, SERVERS
from tests.servers.fetched import INSTALLS, PACKAGES, folder_of, installed_in

CHROMIUM = "chromium"
"""The browser in which the pages are tried."""
RABBITMQ = "rabbitmq"
"""A broker, through which runs are handed over."""
PROMETHEUS = "prometheus"
"""The server that reads the metrics, with promtool."""
PROGRAMS = (CHROMIUM, PROMETHEUS)
"""Programs that are no servers of stores or queues."""


@dataclass(frozen=True)
class Package:
    """Where Debian has a server, and the services that its package would start."""

    name: str
    services: tuple[str, ...]


DEBIAN = {
    "postgres": Package("postgresql", ("postgresql",)),
    "mariadb": Package("mariadb-server", ("mariadb",)),
    "redis": Package("redis-server", ("redis-server",)),
    "pgbouncer": Package("pgbouncer", ("pgbouncer",)),
    "zookeeper": Package("zookeeper", ("zookeeper",)),
    "mongodb": Package("wine64", ()),
    RABBITMQ: Package("rabbitmq-server", ("rabbitmq-server",)),
    CHROMIUM: Package(CHROMIUM, ()),
    PROMETHEUS: Package(PROMETHEUS, ("prometheus",)),
}
"""Valkey, etcd and NATS are not here: their wheels are among the locked packages. DynamoDB Local
comes from npm, and so does a MongoDB for Windows, which Wine runs: Debian has none."""


def main(names: list[str]) -> int:
    known = [*SERVERS, RABBITMQ, CHROMIUM, PROMETHEUS]
    unknown = sorted(set(names) - {*known, *OPTIONAL})
    if unknown:
        print(f"no such server: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    wanted = names or known
    missing = _missing([*wanted, *(["pgbouncer"] if "postgres" in wanted else [])])
    packages = [DEBIAN[name] for name in missing if name in DEBIAN]
    if packages and debian.possible():
        print(f"installing {', '.join(package.name for package in packages)} ...", flush=True)
        services = [service for package in packages for service in package.services]
        debian.install([package.name for package in packages], services=services)
    for name in [name for name in missing if name in PACKAGES and npm.possible() and not folder_of(name).exists()]:
        fetched = PACKAGES[name]
        print(f"fetching {fetched.package} ...", flush=True)
        npm.fetch(fetched.package, fetched.version, fetched.sha512, folder_of(name))
    for name in [name for name in missing if name in INSTALLS and npm.possible() and not installed_in(name).exists()]:
        print(f"installing {name} and what it needs ...", flush=True)
        npm.install(Path(__file__).resolve().parent.parent / INSTALLS[name], installed_in(name))
    for name in _missing(missing):
        hint = f"apt-get install {name}" if name in PROGRAMS else INSTALLED[name].hint
        print(f"{name} is not installed: {hint}", file=sys.stderr)
    return 1 if _missing(missing) and os.environ.get("CI") else 0


def _missing(names: list[str]) -> list[str]:
    return [name for name in names if (shutil.which(name) if name in PROGRAMS else INSTALLED[name].binary()) is None]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
