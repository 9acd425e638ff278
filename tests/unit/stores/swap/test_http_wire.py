"""A kept connection over HTTP can be looked at whatever the number of its descriptor."""

from __future__ import annotations

import fcntl
import resource
import socket
from http.client import HTTPConnection

import pytest

from solocron.stores.swap.http_wire import HttpWire


def test_a_connection_beyond_what_select_takes_is_fresh_until_the_other_side_closes() -> None:
    lowest = 1_100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft <= lowest:
        if hard != resource.RLIM_INFINITY and hard <= lowest:
            pytest.skip(f"this machine allows {hard} open files only")
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 100, hard))
    near, far = socket.socketpair()
    with near, far, socket.socket(fileno=fcntl.fcntl(near.fileno(), fcntl.F_DUPFD, lowest)) as high:
        assert high.fileno() >= lowest
        connection = HTTPConnection("localhost")
        connection.sock = high
        wire = HttpWire(connection)
        assert not wire.is_stale()
        far.close()
        assert wire.is_stale()
