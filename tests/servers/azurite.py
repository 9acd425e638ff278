"""A private Azurite, Microsoft's own stand-in for a storage account; `scripts/servers.py azurite` installs it."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from urllib.parse import quote

from tests.servers.base import Server
from tests.servers.fetched import installed_in

ACCOUNT = "canary"
KEY = "YzRuNHJ5LXA0c3MtYzRuNHJ5LXA0c3M="


class Azurite(Server):
    """Keeps its blobs in files. `settings`: options of the program, such as cert and key."""

    name = "azurite"
    hint = "install node and npm, then run: python scripts/servers.py azurite"

    _numbers = itertools.count(1)

    @classmethod
    def binary(cls) -> Path | None:
        program = installed_in("azurite") / "node_modules/azurite/dist/src/blob/main.js"
        return program if shutil.which("node") and program.exists() else None

    @property
    def url(self) -> str:
        return self.url_of("solocron")

    @property
    def endpoint(self) -> str:
        scheme = "https" if "cert" in self.settings else "http"
        return f"{scheme}://127.0.0.1:{self.port}/{ACCOUNT}"

    def url_of(self, place: str, *, key: str = KEY) -> str:
        return f"azblob://key:{quote(key, safe='')}@{ACCOUNT}/{place}?endpoint={self.endpoint}"

    def fresh_url(self) -> str:
        """A folder that no test has used."""
        return self.url_of(f"solocron/t{os.getpid()}-{next(self._numbers)}")

    def command(self) -> list[str]:
        (self.folder / "data").mkdir(exist_ok=True)
        options = [word for name, value in self.settings.items() for word in (f"--{name}", value)]
        return [
            *("env", f"AZURITE_ACCOUNTS={ACCOUNT}:{KEY}", "node", str(self.binary())),
            *("--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--location", str(self.folder / "data")),
            *("--silent", "--disableTelemetry", "--skipApiVersionCheck", *options),
        ]

    def version(self) -> str:
        return "3.35.0"

    def ask(self) -> None:
        self.create("solocron")

    def create(self, container: str) -> None:
        """Make a container; it is no error if there is one."""
        from solocron.stores.swap.chain.azure.address import AzureAddress
        from solocron.stores.swap.chain.http import HttpLink
        from solocron.stores.url import parse

        url = self.url_of(container) + ("&insecure_tls=1" if "cert" in self.settings else "")
        address = AzureAddress.of(parse(url), timeout=5.0)
        link = HttpLink(address.http, lambda: None)
        try:
            path, headers = address.signed("PUT", None, {"restype": "container"}, {}, 0)
            reply = link.call("PUT", path, headers)
            assert reply.status in (201, 409), reply
        finally:
            link.close()
