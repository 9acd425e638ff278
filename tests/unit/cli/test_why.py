"""`solocron why`: one sentence, and the facts behind it."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop


def test_why_says_what_keeps_a_slot_that_is_due(cli: Cli, shop: Shop) -> None:
    cli("pause", "invoices", "--by", "ana", "--note", "schema move", "--store", shop.url)
    shop.later(7_200)
    answer = cli("why", "invoices", "--store", shop.url)
    assert answer.code == 0
    assert answer.lines[0].startswith("No node has decided the slot ")
    assert answer.lines[0].endswith(" of invoices yet: paused by ana until it is resumed: schema move.")


def test_why_as_json_has_the_same_facts(cli: Cli, shop: Shop) -> None:
    found = cli("why", "invoices", "30d", "--store", shop.url, "--json").json
    assert (found["job"], found["status"]) == ("invoices", "not defined")
    assert found["verdict"] in cli("why", "invoices", "30d", "--store", shop.url).out
    assert all(set(fact) == {"at", "what"} for fact in found["facts"])


def test_a_wrong_name_or_instant_gets_one_sentence(cli: Cli, shop: Shop) -> None:
    answer = cli("why", "invoice", "--store", shop.url)
    assert (answer.code, "Did you mean 'invoices'?" in answer.err) == (3, True)
    answer = cli("why", "invoices", "noon", "--store", shop.url)
    assert "AT: 'noon' is neither an instant" in answer.err
