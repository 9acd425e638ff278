"""`solocron locks`: who has what, and a release by force that stays on record."""

from __future__ import annotations

import re
from dataclasses import fields

from solocron.effects.locks.listing import LockView
from tests.unit.cli.kit import Cli, Shop
from tests.unit.cli.test_reference import sections


def test_locks_are_listed_with_their_owner_and_fence(cli: Cli, shop: Shop) -> None:
    assert "no locks" in cli("locks", "--store", shop.url).err
    held = shop.scheduler.lock("door", at_most="10m").acquire()
    assert held is not None
    with shop.scheduler.lock("window", at_least=0, at_most="1m"):
        pass
    answer = cli("locks", "--store", shop.url)
    assert answer.code == 0
    assert answer.lines[0].split()[:3] == ["LOCK", "STATE", "OWNER"]
    assert answer.lines[1].split()[:3] == ["door", "held", "kitchen"]
    assert str(held.fence) in answer.lines[1]
    assert answer.lines[2].split()[:3] == ["window", "free", "-"]
    shown = cli("locks", "--store", shop.url, "--json").json
    assert [(one["name"], one["state"], one["fence"] > 0) for one in shown] == [
        ("door", "held", True),
        ("window", "free", True),
    ]


def test_a_release_by_force_needs_a_reason_and_is_shown_afterwards(cli: Cli, shop: Shop) -> None:
    held = shop.scheduler.lock("door").acquire()
    assert held is not None
    refused = cli("locks", "--store", shop.url, "--release", "door")
    assert refused.code == 2
    assert "say why" in refused.err
    done = cli("locks", "--store", shop.url, "--release", "door", "--reason", "it hangs", "--by", "ops")
    assert (done.code, done.err) == (0, "")
    assert "was taken from kitchen" in done.out
    assert "by ops: it hangs" in cli("locks", "--store", shop.url).out
    assert held.release() is False
    again = cli("locks", "--store", shop.url, "--release", "door", "--reason", "x")
    assert again.code == 4
    assert cli("locks", "--store", shop.url, "--release", "window", "--reason", "x").code == 3
    assert cli("locks", "--store", shop.url, "--reason", "x").code == 2


def test_every_key_of_a_lock_is_documented() -> None:
    first_cells = "".join(re.findall(r"^\| (`.*?) \|", sections()["locks"], flags=re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) == {field.name for field in fields(LockView)}
