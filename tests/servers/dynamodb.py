"""A private DynamoDB Local, Amazon's own stand-in for one region, from the files that `scripts/servers.py` fetches."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.servers.base import Server
from tests.servers.fetched import PACKAGES, folder_of

REGION = "eu-test-1"
CREDENTIALS = "canary:c4n4ry-p4ss"


class DynamoDB(Server):
    """Keeps its tables in a file. Takes any access key, and asks for one."""

    name = "dynamodb"
    hint = "install a Java runtime and npm, then run: make servers"

    _numbers = itertools.count(1)

    @classmethod
    def binary(cls) -> Path | None:
        jar = folder_of("dynamodb") / "emulator" / "DynamoDBLocal.jar"
        return jar if shutil.which("java") and jar.exists() else None

    @property
    def url(self) -> str:
        return self.url_of("solocron")

    def url_of(self, table: str) -> str:
        return f"dynamodb://{CREDENTIALS}@{REGION}/{table}?endpoint=http://127.0.0.1:{self.port}"

    def fresh_url(self) -> str:
        """A table that no test has used."""
        table = f"t{os.getpid()}-{next(self._numbers)}"
        self.create(table)
        return self.url_of(table)

    def create(self, table: str, **keys: str) -> None:
        """Create a table; without other keys, as Solocron wants it."""
        names = keys or {"p": "HASH", "s": "RANGE"}
        self.call(
            "create_table",
            TableName=table,
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in names.items()],
            BillingMode="PAY_PER_REQUEST",
        )

    def call(self, verb: str, **arguments: Any) -> Any:
        """Call the server itself."""
        client = _client(f"http://127.0.0.1:{self.port}")
        try:
            return getattr(client, verb)(**arguments)
        finally:
            client.close()  # its connections; it makes new ones

    def command(self) -> list[str]:
        jar = self.binary()
        assert jar is not None, self.hint
        (self.folder / "data").mkdir(exist_ok=True)
        return [
            *("java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Djava.library.path={jar.parent / 'DynamoDBLocal_lib'}",
            *("-jar", str(jar), "-port", str(self.port), "-sharedDb", "-dbPath", str(self.folder / "data")),
            *("-disableTelemetry",),
        ]

    def version(self) -> str:
        return PACKAGES["dynamodb"].version

    def ask(self) -> None:
        """Its first calls after a start take a second each, which no timeout of a test allows for."""
        socket.create_connection(("127.0.0.1", self.port)).close()  # a refused call of the driver costs 40 ms of work
        tables = self.call("list_tables")["TableNames"]
        if "solocron" not in tables:
            self.create("solocron")
        item = {"p": {"S": "warm"}, "s": {"S": "warm"}, "v": {"S": ""}, "m": {"S": ""}}
        key = {name: item[name] for name in ("p", "s")}
        for _ in range(3):
            self.call("transact_write_items", TransactItems=[{"Put": {"TableName": "solocron", "Item": item}}])
            self.call("batch_get_item", RequestItems={"solocron": {"Keys": [key], "ConsistentRead": True}})
            values = {":p": {"S": "warm"}, ":a": {"S": "a"}, ":z": {"S": "z"}}
            self.call(
                "query",
                TableName="solocron",
                KeyConditionExpression="p = :p AND s BETWEEN :a AND :z",
                ExpressionAttributeValues=values,
            )


@lru_cache(maxsize=4)
def _client(at: str) -> Any:
    """Return a client for a server: to make one takes a quarter of a second."""
    from botocore.config import Config
    from botocore.session import Session

    session = Session()
    session.set_credentials(*CREDENTIALS.split(":"))
    once = Config(retries={"total_max_attempts": 1})
    return session.create_client("dynamodb", region_name=REGION, endpoint_url=at, config=once)
