"""`solocron nodes`: the nodes while they live."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop, moment


def test_nodes_are_listed_while_they_live(cli: Cli, shop: Shop) -> None:
    assert cli("nodes", "--store", shop.url, "--json").json == []
    assert "no nodes" in cli("nodes", "--store", shop.url).err
    with shop.scheduler:
        (node,) = cli("nodes", "--store", shop.url, "--json").json
        assert (node["node"], node["state"], node["pools"]) == ("kitchen", "live", ["default"])
        assert moment(node["expires_at"]) > moment(node["started_at"])
        assert cli("nodes", "--store", shop.url).lines[1].split()[:3] == ["kitchen", "live", "default"]
