"""`namespaces` and `restored --all` on every store that processes share: each namespace is found, and none is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solocron import Scheduler
from solocron.cli import main

Cli = Callable[..., Any]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*argv: str) -> Any:
        capsys.readouterr()
        assert main(argv) == 0
        return json.loads(capsys.readouterr().out)

    return call


def fill(url: str, namespace: str, jobs: int) -> Scheduler:
    scheduler = Scheduler(url, namespace=namespace)
    for number in range(jobs):
        scheduler.cron("0 1 * * *", name=f"job-{number}")(lambda: None)
    scheduler.start()
    return scheduler


@pytest.mark.parametrize(
    "kind", ["sqlite", "postgres", "mariadb", "redis_server", pytest.param("valkey", marks=pytest.mark.long)]
)
def test_every_namespace_of_a_store_is_listed_and_restored(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, cli: Cli
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}" if kind == "sqlite" else request.getfixturevalue(kind).fresh_url()
    store = ("--store", url, "--json")
    fill(url, "billing", 2).stop()
    reports = fill(url, "reports.daily", 1)
    try:
        listed = [
            {"namespace": "billing", "jobs": 2, "nodes": 0},
            {"namespace": "reports.daily", "jobs": 1, "nodes": 1},
        ]
        assert cli("namespaces", *store) == listed
        assert main(("jobs", "--namespace", "mistyped", *store)) == 3
        assert cli("namespaces", *store) == listed, "looking makes none"
    finally:
        reports.stop()
    before = cli("jobs", "--namespace", "billing", *store)[0]["cursor"]
    assert cli("restored", "--all", *store) == {"jobs": 3, "namespaces": {"billing": 2, "reports.daily": 1}}
    assert cli("jobs", "--namespace", "billing", *store)[0]["cursor"] > before
