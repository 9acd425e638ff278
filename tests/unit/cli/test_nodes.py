"""`solocron nodes`: the nodes while they live, and on demand how they ended."""

from __future__ import annotations

from solocron import Scheduler
from solocron.clock import SECOND
from solocron.model.change import Kind
from solocron.model.documents.session import Session, begin
from solocron.stores.contract import Named
from solocron.stores.url import make_store
from tests.unit.cli.kit import Cli, Shop, moment


def test_nodes_are_listed_while_they_live(cli: Cli, shop: Shop) -> None:
    assert cli("nodes", "--store", shop.url, "--json").json == []
    assert "no nodes" in cli("nodes", "--store", shop.url).err
    with shop.scheduler:
        (node,) = cli("nodes", "--store", shop.url, "--json").json
        assert (node["node"], node["state"], node["pools"]) == ("kitchen", "live", ["default"])
        assert moment(node["expires_at"]) > moment(node["started_at"])
        assert cli("nodes", "--store", shop.url).lines[1].split()[:3] == ["kitchen", "live", "default"]


def test_what_a_node_runs_is_shown_of_how_much_it_may(cli: Cli) -> None:
    with Scheduler("memory://eight", node="kitchen", max_running=8):
        (node,) = cli("nodes", "--store", "memory://eight", "--json").json
        line = cli("nodes", "--store", "memory://eight").lines[1]
    assert (node["running"], node["max_running"]) == (0, 8)
    assert line.split()[3:6] == ["0", "of", "8"]


def test_nodes_that_have_ended_are_shown_on_demand_with_the_reason(cli: Cli) -> None:
    """The first question after an incident is which nodes were there, and how each of them ended."""
    url = "memory://nodes-that-ended"
    store = make_store(url)
    with Scheduler(url, node="drained"):
        pass
    Scheduler(url, node="ticked").tick()
    killed = Session(name="s", node="killed", host="h", pid=1, lease=15 * SECOND)
    store.update(Named(Kind.SESSION, ("s",)), lambda doc, now: begin(doc, killed, now=now))
    store.shift_clock(60 * SECOND)
    Scheduler(url, node="sweeper").tick()
    assert cli("nodes", "--store", url, "--json").json == []
    found = cli("nodes", "--all", "--store", url, "--json").json
    assert {node["node"]: (node["state"], node["reason"]) for node in found} == {
        "drained": ("ended", "drained: its node stopped"),
        "ticked": ("ended", "its tick is over"),
        "killed": ("ended", "not renewed in time, buried by sweeper"),
        "sweeper": ("ended", "its tick is over"),
    }
    assert [moment(node["ended_at"]) for node in found] == sorted((moment(n["ended_at"]) for n in found), reverse=True)
    table = cli("nodes", "--all", "--store", url)
    assert "ENDED (UTC)" in table.lines[0]
    assert "not renewed in time, buried by sweeper" in table.out
