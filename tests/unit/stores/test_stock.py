"""Idle connections that several stores share: for whom each is kept, and who closes it."""

from __future__ import annotations

import gc

import pytest

from solocron.stores.stock import Stock, stock_of
from tests.unit.stores.sql.test_pool import Thing, in_a_fork

MINUTE = "solocron.stores.stock.IDLE_FOR"


class Tenant:
    """A store that uses a stock."""


@pytest.fixture
def stock() -> Stock[Thing]:
    return Stock(keep=2)


def held(stock: Stock[Thing], user: object, *, renews: bool = False) -> Thing:
    return stock.take(user, renews=renews) or Thing()


def test_what_one_store_gives_back_another_gets(stock: Stock[Thing]) -> None:
    a, b = Tenant(), Tenant()
    thing = held(stock, a)
    stock.give(thing)
    assert stock.take(b) is thing


def test_the_last_store_that_leaves_closes_everything(stock: Stock[Thing]) -> None:
    a, b = Tenant(), Tenant()
    things = [held(stock, a), held(stock, b), held(stock, b, renews=True)]
    stock.give(things[0])
    stock.give(things[1])
    stock.give(things[2], renews=True)
    stock.leave(a)
    assert not any(thing.closed for thing in things)
    stock.leave(b)
    assert all(thing.closed for thing in things)
    assert not any(thing.discarded for thing in things)


def test_a_store_that_was_forgotten_instead_of_closed_does_not_keep_the_rest_open(stock: Stock[Thing]) -> None:
    forgotten, b = Tenant(), Tenant()
    thing = held(stock, forgotten)
    held(stock, b)
    stock.give(thing)
    del forgotten
    gc.collect()
    stock.leave(b)
    assert thing.closed


def test_each_store_adds_to_what_may_lie_idle(stock: Stock[Thing]) -> None:
    a, b = Tenant(), Tenant()
    things = [held(stock, tenant) for tenant in (a, a, a, b, b)]
    for thing in things:
        stock.give(thing)
    assert [thing.closed for thing in things] == [False, False, False, False, True]


def test_renewals_lend_each_other_what_no_other_call_takes(stock: Stock[Thing]) -> None:
    a, b = Tenant(), Tenant()
    own = held(stock, a, renews=True)
    stock.give(own, renews=True)
    assert stock.take(b) is None, "no work of another tenant takes it"
    assert stock.take(b, renews=True) is own
    assert stock.take(a, renews=True) is None, "and a renewal that finds none does not wait: it connects"


def test_renewals_of_several_stores_keep_two_connections(stock: Stock[Thing], monkeypatch: pytest.MonkeyPatch) -> None:
    tenants = [Tenant() for _ in range(3)]
    things = [held(stock, tenant, renews=True) for tenant in tenants]
    for thing in things:
        stock.give(thing, renews=True)
    assert not any(thing.closed for thing in things)
    monkeypatch.setattr(MINUTE, -1.0)  # as if a minute had passed
    again = held(stock, tenants[0], renews=True)
    stock.give(again, renews=True)
    assert [thing.closed for thing in things] == [True, False, False]


def test_a_drop_closes_what_lies_idle_for_every_store(stock: Stock[Thing]) -> None:
    a, b = Tenant(), Tenant()
    things = [held(stock, a), held(stock, b)]
    for thing in things:
        stock.give(thing)
    drops = stock.drops
    stock.drop()
    assert all(thing.closed for thing in things)
    assert stock.drops == drops + 1


def test_stores_that_are_alike_have_one_stock_for_as_long_as_one_of_them_lives() -> None:
    one = stock_of(("server", 15), keep=2)
    assert stock_of(("server", 15), keep=2) is one
    assert stock_of(("server", 30), keep=2) is not one
    assert stock_of(None, keep=2) is not stock_of(None, keep=2)
    tenant = Tenant()
    one.give(held(one, tenant))
    del one
    gc.collect()
    assert stock_of(("server", 15), keep=2).take(tenant) is None, "the stock is gone with its last store"


def test_a_fork_has_neither_the_connections_nor_the_users_of_its_parent(stock: Stock[Thing]) -> None:
    a, b = Tenant(), Tenant()
    parents = [held(stock, a), held(stock, b, renews=True)]
    stock.give(parents[0])
    stock.give(parents[1], renews=True)

    def child() -> bool:
        gc.collect()
        empty = stock.take(b) is None and stock.take(b, renews=True) is None
        stock.leave(b)  # the parent's other store does not keep the child's stock open
        own = Thing()
        stock.give(own)
        return empty and own.closed and not any(thing.closed for thing in parents)

    with stock._mutex:  # another thread of the parent is just taking one
        assert in_a_fork(child)
    assert stock.take(a) is parents[0]
