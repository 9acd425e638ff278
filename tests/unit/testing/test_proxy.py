"""The proxy does to a connection what a test asks of it, when it asks, and to nothing else."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from solocron.testing.proxy import ChaosProxy

SOON = 10.0
"""Seconds; nothing here takes a hundredth of it unless something is wrong."""
SILENCE = 0.1
"""Seconds in which nothing must arrive, on a loopback that takes microseconds."""


class Echo(socketserver.ThreadingTCPServer):
    """Says everything back; knows what it has received and how its connections ended."""

    allow_reuse_address = True

    def __init__(self) -> None:
        self.received = b""
        self.endings: list[str] = []
        self.changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), EchoHandler)

    def saw(self, *, received: bytes | None = None, ending: str | None = None) -> bool:
        """Wait until it has."""
        with self.changed:
            return self.changed.wait_for(
                lambda: received in (None, self.received) and (ending is None or ending in self.endings), SOON
            )


class EchoHandler(socketserver.BaseRequestHandler):
    server: Echo

    def handle(self) -> None:
        ending = "end"
        try:
            while data := self.request.recv(65536):
                with self.server.changed:
                    self.server.received += data
                    self.server.changed.notify_all()
                self.request.sendall(data)
        except OSError:
            ending = "loss"
        with self.server.changed:
            self.server.endings.append(ending)
            self.server.changed.notify_all()


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[ChaosProxy]:
    with ChaosProxy(*echo.server_address) as proxy:  # type: ignore[misc]
        yield proxy


@pytest.fixture
def client(proxy: ChaosProxy) -> Iterator[socket.socket]:
    with connect(proxy) as client:
        yield client


def connect(proxy: ChaosProxy) -> socket.socket:
    return socket.create_connection((proxy.host, proxy.port), timeout=SOON)


def exchange(client: socket.socket, data: bytes) -> bytes:
    """Send, and read as many bytes back."""
    client.sendall(data)
    return read(client, len(data))


def read(client: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size and (more := client.recv(size - len(got))):
        got += more
    return got


def assert_silent(client: socket.socket) -> None:
    """Neither bytes nor an end nor an error come."""
    client.settimeout(SILENCE)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(SOON)


def test_without_faults_everything_passes(client: socket.socket, proxy: ChaosProxy, echo: Echo) -> None:
    assert exchange(client, b"hello") == b"hello"
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""
    assert echo.saw(ending="end")
    traffic = proxy.wait_for(lambda traffic: traffic.open == 0)
    assert (traffic.accepted, traffic.requests, traffic.replies, traffic.cut) == (1, 5, 5, 0)


def test_more_than_any_buffer_holds_passes_whole(client: socket.socket) -> None:
    data = bytes(range(256)) * 40_000
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(read(client, len(data))))
    reader.start()
    client.sendall(data)
    reader.join()
    assert got == [data]


def test_a_redirected_proxy_resets_its_clients_and_leads_the_next_elsewhere(
    client: socket.socket, proxy: ChaosProxy, echo: Echo
) -> None:
    assert exchange(client, b"one") == b"one"
    with Echo() as other:
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            proxy.redirect(other.server_address[1])
            with pytest.raises(ConnectionResetError):
                client.recv(1)
            with connect(proxy) as later:
                assert exchange(later, b"two") == b"two"
                assert other.saw(received=b"two")
        finally:
            other.shutdown()
            thread.join()
    assert echo.received == b"one"


def test_a_delay_holds_bytes_back_until_it_is_healed(client: socket.socket, proxy: ChaosProxy, echo: Echo) -> None:
    proxy.delay(3600)
    client.sendall(b"later")
    proxy.wait_for(lambda traffic: traffic.held == 5)
    assert echo.received == b""
    proxy.heal()
    assert read(client, 5) == b"later"


def test_a_delay_counts_in_both_directions(client: socket.socket, proxy: ChaosProxy) -> None:
    proxy.delay(0.05)
    began = time.monotonic()
    assert exchange(client, b"slow") == b"slow"
    assert time.monotonic() - began >= 0.1


def test_the_end_of_a_connection_is_delayed_like_its_bytes(
    client: socket.socket, proxy: ChaosProxy, echo: Echo
) -> None:
    """A client that sends and dies is heard out: what it sent arrives first."""
    proxy.delay(3600)
    client.sendall(b"last words")
    proxy.wait_for(lambda traffic: traffic.held == 10)
    client.close()
    assert echo.endings == []
    proxy.heal()
    assert echo.saw(received=b"last words")
    proxy.wait_for(lambda traffic: traffic.open == 0)


def test_cut_resets_both_sides_and_takes_new_connections(client: socket.socket, proxy: ChaosProxy, echo: Echo) -> None:
    exchange(client, b"hello")
    proxy.cut()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert echo.saw(ending="loss")
    assert proxy.traffic.cut == 1
    with connect(proxy) as other:
        assert exchange(other, b"again") == b"again"


def test_refuse_turns_new_clients_away_and_keeps_the_old(client: socket.socket, proxy: ChaosProxy) -> None:
    exchange(client, b"hello")
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    assert exchange(client, b"still") == b"still"
    proxy.accept()
    with connect(proxy) as other:
        assert exchange(other, b"again") == b"again"


def test_a_refusing_proxy_keeps_its_port(proxy: ChaosProxy) -> None:
    """Else another program might get it, and the client would talk to that."""
    proxy.refuse()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((proxy.host, proxy.port))


def test_a_black_hole_takes_everything_and_says_nothing(client: socket.socket, proxy: ChaosProxy, echo: Echo) -> None:
    exchange(client, b"hello")
    proxy.blackhole()
    client.sendall(b"anyone?")
    proxy.wait_for(lambda traffic: traffic.swallowed == 7)
    assert_silent(client)
    assert echo.received == b"hello"


def test_a_black_hole_hides_that_a_client_is_gone(client: socket.socket, proxy: ChaosProxy, echo: Echo) -> None:
    exchange(client, b"hello")
    proxy.blackhole()
    client.sendall(b"bye")
    proxy.wait_for(lambda traffic: traffic.swallowed == 3)
    client.close()
    with connect(proxy) as later:  # taken after the end of the first: the end has been seen by now
        later.sendall(b"!")
        proxy.wait_for(lambda traffic: traffic.swallowed == 4)
    assert echo.endings == []
    assert proxy.traffic.open >= 1


def test_a_healed_black_hole_resets_what_it_has_swallowed_from(client: socket.socket, proxy: ChaosProxy) -> None:
    """Going on would hand the target a request with a hole in it."""
    with connect(proxy) as quiet:
        exchange(quiet, b"hello")
        proxy.blackhole()
        client.sendall(b"lost")
        proxy.wait_for(lambda traffic: traffic.swallowed == 4)
        proxy.heal()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        assert exchange(quiet, b"unhurt") == b"unhurt"


def test_dropped_replies_let_the_request_through(client: socket.socket, proxy: ChaosProxy, echo: Echo) -> None:
    proxy.drop_replies()
    client.sendall(b"commit")
    assert echo.saw(received=b"commit")
    proxy.wait_for(lambda traffic: traffic.swallowed == 6)
    assert_silent(client)
    proxy.heal()
    with pytest.raises(ConnectionResetError):
        client.recv(1)


@pytest.mark.parametrize("n_bytes", [0, 1, 6])
def test_a_reply_is_cut_at_the_byte_asked_for(
    client: socket.socket, proxy: ChaosProxy, echo: Echo, n_bytes: int
) -> None:
    """The request has had its effect; the client cannot know."""
    proxy.cut_after(n_bytes, "replies")
    client.sendall(b"commit!")
    assert echo.saw(received=b"commit!", ending="loss")
    assert read(client, n_bytes) == b"commit!"[:n_bytes]
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with connect(proxy) as other:
        assert exchange(other, b"once only") == b"once only"


def test_a_request_is_cut_before_it_arrives(client: socket.socket, proxy: ChaosProxy, echo: Echo) -> None:
    proxy.cut_after(3, "requests")
    client.sendall(b"commit")
    assert echo.saw(received=b"com", ending="loss")
    proxy.wait_for(lambda traffic: traffic.cut == 1)


def test_a_target_that_is_away_resets_its_clients() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        with ChaosProxy(*nobody.getsockname()) as away:
            # The reset may be there before `connect` returns.
            with pytest.raises(ConnectionResetError), connect(away) as client:
                client.recv(1)
            assert away.wait_for(lambda traffic: traffic.open == 0).accepted == 1


def test_a_client_that_vanishes_in_the_middle_is_forgotten(proxy: ChaosProxy, echo: Echo) -> None:
    """It has closed while replies were on their way: they go nowhere, and nothing of it stays."""
    client = connect(proxy)
    client.sendall(b"x" * 1_000_000)
    client.close()
    proxy.wait_for(lambda traffic: traffic.accepted == 1 and traffic.open == 0)


def test_close_ends_everything_and_may_be_repeated(echo: Echo) -> None:
    proxy = ChaosProxy("127.0.0.1", echo.server_address[1])
    client = connect(proxy)
    exchange(client, b"hello")
    proxy.close()
    proxy.close()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    client.close()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    with pytest.raises(RuntimeError, match="closed"):
        proxy.heal()
    assert proxy.traffic.open == 0


def test_faults_may_be_set_from_many_threads_at_once(proxy: ChaosProxy) -> None:
    def torment() -> None:
        for _ in range(50):
            proxy.refuse()
            proxy.blackhole()
            proxy.cut()
            proxy.heal()

    threads = [threading.Thread(target=torment) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with connect(proxy) as client:
        assert exchange(client, b"fine") == b"fine"


def test_a_url_leads_through_the_proxy_with_everything_else_kept(echo: Echo) -> None:
    url = f"postgresql://app:secret@127.0.0.1:{echo.server_address[1]}/db?sslmode=disable"
    with ChaosProxy.for_url(url) as proxy:
        assert proxy.through(url) == f"postgresql://app:secret@127.0.0.1:{proxy.port}/db?sslmode=disable"
        with connect(proxy) as client:
            assert exchange(client, b"hello") == b"hello"


def test_a_url_with_an_endpoint_leads_through_the_proxy_to_that(echo: Echo) -> None:
    place = f"127.0.0.1:{echo.server_address[1]}"
    for url in (
        f"dynamodb://key:secret@eu-test-1/table?endpoint=http://{place}",
        f"azblob://key:secret@account/box/folder?ca=file&endpoint=http://{place}/account&insecure_tls=1",
    ):
        with ChaosProxy.for_url(url) as proxy:
            assert proxy.through(url) == url.replace(place, f"127.0.0.1:{proxy.port}")
            with connect(proxy) as client:
                assert exchange(client, b"hello") == b"hello"


def test_a_url_without_a_port_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="host and a port") as refused:
        ChaosProxy.for_url("postgresql://app:secret@db/app")
    assert "secret" not in str(refused.value)


def test_a_wait_that_is_in_vain_says_what_was_seen(proxy: ChaosProxy) -> None:
    with pytest.raises(TimeoutError, match="accepted=0"):
        proxy.wait_for(lambda traffic: traffic.accepted == 1, timeout=0.01)


@pytest.mark.parametrize("wrong", [lambda proxy: proxy.delay(-1), lambda proxy: proxy.cut_after(-1, "replies")])
def test_impossible_faults_are_refused(proxy: ChaosProxy, wrong) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="-1"):
        wrong(proxy)
