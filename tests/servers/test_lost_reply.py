"""The network's cruellest trick on a real server: the commit arrives, and its answer does not."""

from __future__ import annotations

import psycopg
import pytest

from solocron.testing.proxy import ChaosProxy
from tests.servers import Postgres


def test_a_commit_whose_reply_is_cut_has_happened(postgres: Postgres) -> None:
    url = postgres.fresh_url()
    with ChaosProxy.for_url(url) as proxy, psycopg.connect(url) as direct:
        direct.execute("CREATE TABLE note (text varchar(9))")
        direct.commit()
        with psycopg.connect(proxy.through(url)) as client:
            client.execute("INSERT INTO note VALUES ('kept')")
            proxy.cut_after(0, "replies")
            with pytest.raises(psycopg.OperationalError):
                client.commit()
        assert direct.execute("SELECT text FROM note").fetchall() == [("kept",)]


def test_a_commit_that_never_arrives_has_not(postgres: Postgres) -> None:
    url = postgres.fresh_url()
    with ChaosProxy.for_url(url) as proxy, psycopg.connect(url) as direct:
        direct.execute("CREATE TABLE note (text varchar(9))")
        direct.commit()
        with psycopg.connect(proxy.through(url)) as client:
            client.execute("INSERT INTO note VALUES ('lost')")
            proxy.cut_after(0, "requests")
            with pytest.raises(psycopg.OperationalError):
                client.commit()
        assert direct.execute("SELECT text FROM note").fetchall() == []
