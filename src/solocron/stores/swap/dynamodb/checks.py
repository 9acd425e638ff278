"""Facts behind `doctor` and the tier on DynamoDB: the table's keys, its copies, billing and backups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from solocron.clock import MILLISECOND
from solocron.errors import StoreRefused
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.dynamodb.link import DynamoLink
from solocron.stores.swap.server_time import ServerTime

__all__ = ["DynamoFacts", "ask_facts", "capabilities_of", "checks_of"]

_KEYS = {"p": "HASH", "s": "RANGE"}


@dataclass(frozen=True, slots=True)
class DynamoFacts:
    """Settings that the table reports; None where this access key may not ask."""

    table: dict[str, Any] | None
    recovery: bool | None

    @property
    def regions(self) -> int:
        return 1 + len((self.table or {}).get("Replicas", ()))

    @property
    def billing(self) -> str:
        return str((self.table or {}).get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"))


def ask_facts(link: DynamoLink) -> DynamoFacts:
    """Ask for the table; refuse one that is not as it has to be."""
    name, url = link.address.table, link.url
    table = _if_allowed(link, "describe_table", TableName=name)
    if table is None:
        return DynamoFacts(None, None)
    found = table["Table"]
    keys = {one["AttributeName"]: one["KeyType"] for one in found["KeySchema"]}
    kinds = {one["AttributeName"]: one["AttributeType"] for one in found["AttributeDefinitions"]}
    if keys != _KEYS or any(kinds.get(key) != "S" for key in _KEYS):
        raise StoreRefused(
            f"{url}: the table {name!r} has other keys; nothing was written. It needs a partition key 'p' and a sort "
            "key 's', both strings: take another table."
        )
    backups = _if_allowed(link, "describe_continuous_backups", TableName=name)
    return DynamoFacts(found, None if backups is None else _recovers(backups))


def _if_allowed(link: DynamoLink, verb: str, **arguments: Any) -> dict[str, Any] | None:
    try:
        return link.read(verb, **arguments)
    except StoreRefused as error:
        if "not the rights" in str(error) or verb != "describe_table":
            return None
        raise


def _recovers(reply: dict[str, Any]) -> bool:
    told = reply.get("ContinuousBackupsDescription", {}).get("PointInTimeRecoveryDescription", {})
    return bool(told.get("PointInTimeRecoveryStatus") == "ENABLED")


def capabilities_of(facts: DynamoFacts | None, clock: ServerTime) -> Capabilities:
    """Return the tier: no higher than what the suites have shown on a server that can be had for tests."""
    within = clock.width
    if facts is None:
        why = "not opened yet, so nothing is known of it"
        return Capabilities(tier=Tier.C, why=why, notifies=True, clock_within=within)
    if facts.regions > 1:
        why = f"a global table in {facts.regions} regions: two regions may both win, and the last writer stays"
        return Capabilities(tier=Tier.C, why=why, notifies=True, clock_within=within)
    why = (
        "transactions of one region are serializable and durable by the vendor's word; the suites ran on DynamoDB Local"
    )
    return Capabilities(tier=Tier.B, why=why, notifies=True, clock_within=within)


def checks_of(facts: DynamoFacts, link: DynamoLink) -> Iterator[Check]:
    """Yield the lines of `doctor`."""
    found = capabilities_of(facts, link.time)
    several = facts.regions > 1
    name = f"{link.address.table} in {link.address.region}"
    yield Check(
        "table", "FAIL" if several else "OK", f"{name}: {found.why}", "take a table of one region" if several else None
    )
    if facts.table is None:
        yield Check("settings", "OK", "cannot be seen with this access key (dynamodb:DescribeTable)")
    elif facts.billing == "PROVISIONED":
        remedy = "switch it to on-demand (PAY_PER_REQUEST), or provision for the busiest minute"
        yield Check("capacity", "WARN", "provisioned: a burst beyond it is throttled, and jobs start late", remedy)
    else:
        yield Check("capacity", "OK", "on demand")
    if facts.recovery is False:
        remedy = "switch point-in-time recovery on"
        yield Check("backup", "WARN", "point-in-time recovery is off: a table that is deleted is gone", remedy)
    if link.throttled:
        remedy = "provision more, or spread the namespaces over tables"
        yield Check("throttled", "WARN", f"{link.throttled} calls of this process had to wait", remedy)
    if (link.address.endpoint or "").startswith("http://"):
        remedy = "use https://"
        yield Check("encryption", "WARN", "off: the endpoint is http://; fine for a local server", remedy)
    told = (
        f"known to {link.time.width / MILLISECOND:.0f} ms; DynamoDB tells whole seconds, and a node asks when they turn"
    )
    yield Check("time", "OK", told)
