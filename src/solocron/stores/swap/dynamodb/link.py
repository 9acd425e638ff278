"""Calls of DynamoDB: one client for each process and address, errors by what is certain of them, time from replies."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Hashable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from weakref import WeakSet

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.session import Session

from solocron.clock import SECOND
from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.swap.dynamodb.address import DynamoAddress
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.server_time import ServerTime, time_of

__all__ = ["DynamoCancelled", "DynamoLink"]

_BUSY = frozenset(
    {
        *("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"),
        *("TransactionInProgressException", "TransactionConflictException", "LimitExceededException"),
    }
)
"""Nothing was done, and it is worth repeating."""
_NO_LOGIN = frozenset(
    {
        *("UnrecognizedClientException", "InvalidSignatureException", "MissingAuthenticationTokenException"),
        *("IncompleteSignatureException", "ExpiredTokenException", "InvalidClientTokenId"),
    }
)


class DynamoCancelled(Exception):
    """A commit did nothing; `reasons` has a word for each of its parts, and none at all where there was only one."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__(", ".join(reasons))
        self.reasons = reasons


class DynamoLink:
    """The calls of one client."""

    def __init__(self, address: DynamoAddress) -> None:
        self.address = address
        self.time: ServerTime = time_of(("dynamodb", address.region, address.endpoint))
        self.sent = 0
        """Calls so far, those of a thread that waits for notifications included."""
        self.throttled = 0
        """How often the table had more to do than it may."""

    @property
    def url(self) -> str:
        return self.address.parts.masked

    def close(self) -> None:
        """Say that this client makes no calls for now; the last one closes the connections that they share."""
        client = _client(self.address)
        client.users.discard(self)
        if not client.users:
            client.calls.close()

    def read(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Make a call that may be repeated; once more if no reply comes, which looks so when a server restarts."""
        try:
            return self.call(verb, **arguments)
        except Lost:
            try:
                return self.call(verb, **arguments)
            except Lost as error:
                raise StoreUnavailable(f"{self.url} did not reply: {error}; nothing was written.") from None

    def call(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Make a call; raise `Lost` if it was sent and its outcome is unknown, `DynamoCancelled` if it did nothing."""
        until = time.monotonic() + self.address.timeout
        pause = 0.01
        while True:
            sent = self.time.begin_call()
            self.sent += 1
            try:
                client = _client(self.address)
                client.users.add(self)
                reply: dict[str, Any] = getattr(client.calls, verb)(**arguments)
            except ClientError as error:
                self._observe(error.response, sent)
                self._raise_for(error)
                self.throttled += "Throughput" in str(error) or "Throttling" in str(error)
                if time.monotonic() + pause > until:
                    raise StoreUnavailable(
                        f"{self.url} has too much to do: {_code(error)}. Nothing was done."
                    ) from None
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
                pause *= 2
            except (NoCredentialsError, PartialCredentialsError, ProfileNotFound) as error:
                raise StoreRefused(
                    f"{self.url}: no credentials were found ({error}); nothing was done. Write key:secret@ into the "
                    "URL, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role."
                ) from None
            except (EndpointConnectionError, ConnectTimeoutError) as error:
                raise StoreUnavailable(
                    f"{self.url} cannot be reached: {self._scrubbed(error)}; nothing was written."
                ) from None
            except (ConnectionError, HTTPClientError) as error:
                raise Lost(self._scrubbed(error)) from None
            except BotoCoreError as error:
                raise StoreRefused(f"{self.url}: {self._scrubbed(error)}. Nothing was done.") from None
            else:
                self._observe(reply, sent)
                return reply

    def _observe(self, reply: Mapping[str, Any], sent: float) -> None:
        date = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            low = int(parsedate_to_datetime(date).timestamp()) * SECOND
            self.time.told(low, low + SECOND, sent)

    def _raise_for(self, error: ClientError) -> None:
        """Raise what an error means, unless the call is worth repeating."""
        code, text = _code(error), self._scrubbed(error)
        if code == "ConditionalCheckFailedException":
            raise DynamoCancelled([]) from None
        if code == "TransactionCanceledException":
            reasons = [str(one.get("Code", "None")) for one in error.response.get("CancellationReasons", ())]
            if "ConditionalCheckFailed" in reasons:
                raise DynamoCancelled(reasons) from None
            if "ValidationError" in reasons:
                raise StoreRefused(f"{self.url} refused a commit: {text}. Nothing was written.") from None
            return  # another commit was under way: not a conflict with a check
        if code in _BUSY:
            return
        address = self.address
        if code == "ResourceNotFoundException":
            raise StoreRefused(
                f"{self.url}: there is no table {address.table!r} in {address.region}; nothing was written. Create it "
                f"with: aws dynamodb create-table --region {address.region} --table-name {address.table} "
                "--attribute-definitions AttributeName=p,AttributeType=S AttributeName=s,AttributeType=S "
                "--key-schema AttributeName=p,KeyType=HASH AttributeName=s,KeyType=RANGE --billing-mode PAY_PER_REQUEST"
            ) from None
        if code in _NO_LOGIN:
            raise StoreRefused(f"{self.url} refused the access key or its secret ({code}); nothing was done.") from None
        if code == "AccessDeniedException":
            raise StoreRefused(
                f"{self.url}: the access key has not the rights: {text}. Give it the policy of the page on DynamoDB. "
                "Nothing was done."
            ) from None
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if status >= 500:
            raise Lost(text) from None
        raise StoreRefused(f"{self.url} refused a call: {text}. Nothing was done.") from None

    def _scrubbed(self, error: object) -> str:
        return self.address.parts.scrub(str(error) or type(error).__name__)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


# --- clients: each costs a tenth of a second and has connections, so that the stores of a process share them


class _SharedBotoClient:
    """A client of botocore's and the links that use it; without any, its connections are closed."""

    def __init__(self, address: DynamoAddress) -> None:
        session = Session(profile=address.profile)
        if address.parts.user is not None and address.parts.password is not None:
            session.set_credentials(address.parts.user, address.parts.password.reveal())
        config = Config(
            connect_timeout=address.timeout,
            read_timeout=address.timeout,
            retries={"total_max_attempts": 1},  # repeats are made here, where it is known what may be repeated
            max_pool_connections=20,
            parameter_validation=False,
        )
        self.calls: Any = session.create_client(
            "dynamodb", region_name=address.region, endpoint_url=address.endpoint, config=config
        )
        self.users: WeakSet[DynamoLink] = WeakSet()


_clients: dict[Hashable, _SharedBotoClient] = {}


def _client(address: DynamoAddress) -> _SharedBotoClient:
    """Return the client of an address in this process."""
    parts = address.parts
    secret = None if parts.password is None else parts.password.last
    key = (os.getpid(), parts.user, secret, address.region, address.endpoint, address.profile, address.timeout)
    found = _clients.get(key)
    if found is None:
        found = _clients.setdefault(key, _SharedBotoClient(address))  # atomic: a mutex could stay locked over a fork
    return found
