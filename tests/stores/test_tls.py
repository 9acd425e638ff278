"""TLS to real servers: what does not verify is refused at once, what is not verified is a warning of `doctor`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from solocron.errors import InvalidError, StoreRefused
from solocron.stores.contract import Check, Store
from solocron.stores.sql import checks
from solocron.stores.url import make_store
from tests.servers import MariaDB, Postgres, Redis, Server
from tests.servers.base import free_port
from tests.servers.fixtures import require

pytestmark = pytest.mark.usefixtures("openssl")

NAME = "db.example"
SELF_SIGNED = [
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
    *("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME},IP:127.0.0.1"),
    *("-keyout", "key.pem", "-out", "certificate.pem"),
]


class TlsPostgres(Postgres):
    def prepare(self) -> None:
        super().prepare()
        self.run(SELF_SIGNED)
        self.settings |= {"ssl": "on", "ssl_cert_file": f"{self.folder}/certificate.pem"}
        self.settings |= {"ssl_key_file": f"{self.folder}/key.pem"}


class TlsMariaDB(MariaDB):
    def prepare(self) -> None:
        super().prepare()
        self.run(SELF_SIGNED)
        self.settings |= {"ssl-cert": f"{self.folder}/certificate.pem", "ssl-key": f"{self.folder}/key.pem"}


class TlsRedis(Redis):
    tls_port = 0

    def prepare(self) -> None:
        self.run(SELF_SIGNED)
        self.tls_port = free_port()
        files = {"cert-file": "certificate.pem", "key-file": "key.pem", "ca-cert-file": "certificate.pem"}
        self.settings |= {f"tls-{name}": f"{self.folder}/{file}" for name, file in files.items()}
        self.settings |= {"tls-port": str(self.tls_port), "tls-auth-clients": "no"}


@contextmanager
def served(kind: type[Server]) -> Iterator[Server]:
    require(kind)
    with kind(shared=True) as server:
        yield server


@pytest.fixture(scope="module")
def postgres_tls() -> Iterator[Server]:
    with served(TlsPostgres) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb_tls() -> Iterator[Server]:
    with served(TlsMariaDB) as server:
        yield server


@contextmanager
def made(url: str) -> Iterator[Store]:
    store = make_store(url)
    try:
        yield store
    finally:
        store.close()


def encryption(url: str) -> Check:
    with made(url) as store:
        (found,) = [check for check in store.checks() if check.name == "encryption"]
    return found


def refused(url: str, match: str) -> None:
    with made(url) as store, pytest.raises(StoreRefused, match=match):
        store.open()


class TestPostgres:
    @pytest.fixture
    def url(self, postgres_tls: Server) -> str:
        """A server on another machine, for all that the URL tells."""
        return f"postgresql://solocron@{NAME}:{postgres_tls.port}/postgres?hostaddr=127.0.0.1"

    def test_a_certificate_that_verifies_is_all_right(self, url: str, postgres_tls: Server) -> None:
        for mode in ("verify-full", "verify-ca", "require"):
            found = encryption(f"{url}&sslmode={mode}&sslrootcert={postgres_tls.folder}/certificate.pem")
            assert found == Check("encryption", "OK", "TLS, with a verified certificate")

    @pytest.mark.parametrize("mode", ["require", "prefer"])
    def test_one_that_is_not_verified_is_a_warning(self, url: str, mode: str) -> None:
        found = encryption(f"{url}&sslmode={mode}")
        assert (found.level, found.remedy) == ("WARN", "add sslmode=verify-full to the URL")
        assert found.detail.startswith("TLS, but the certificate is not verified")

    def test_one_of_another_authority_is_refused(self, url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
        other = tmp_path_factory.mktemp("other")
        _sign(other)
        trusted = f"sslmode=verify-full&sslrootcert={other}/certificate.pem"
        refused(f"{url}&{trusted}", r"certificate is not trusted.*nothing was written\. Name the file .*sslrootcert=")

    def test_one_of_another_name_is_refused(self, url: str, postgres_tls: Server) -> None:
        trusted = f"sslmode=verify-full&sslrootcert={postgres_tls.folder}/certificate.pem"
        refused(f"{url.replace(NAME, 'other.example')}&{trusted}", "does not match host name")

    def test_an_authority_that_is_not_there_is_refused(self, url: str) -> None:
        refused(f"{url}&sslmode=verify-full&sslrootcert=/nowhere.pem", "not trusted.*nowhere.pem")

    def test_a_server_without_tls_is_refused_where_it_is_demanded(self, postgres: Postgres) -> None:
        refused(f"{postgres.url}?sslmode=require", "offers no TLS, which the URL demands")


class TestMariaDB:
    @pytest.fixture
    def url(self, mariadb_tls: Server, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setattr(checks, "loopback", lambda hosts: False)
        return mariadb_tls.url

    def test_a_certificate_that_verifies_is_all_right(self, url: str, mariadb_tls: Server) -> None:
        found = encryption(f"{url}?ssl_ca={mariadb_tls.folder}/certificate.pem")
        assert found == Check("encryption", "OK", "TLS, with a verified certificate")

    def test_one_that_is_not_verified_is_a_warning(self, url: str) -> None:
        found = encryption(url)
        assert (found.level, found.remedy) == ("WARN", "add ssl_ca= to the URL")

    def test_one_that_does_not_verify_is_refused(self, url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
        other = tmp_path_factory.mktemp("other")
        _sign(other)
        refused(f"{url}?ssl_ca={other}/certificate.pem", r"certificate is not trusted.*nothing was written.*ssl_ca=")
        refused(f"{url}?ssl_ca={other}/nowhere.pem", "a file that the URL names cannot be read")

    def test_one_of_another_name_is_refused(self, url: str, mariadb_tls: Server) -> None:
        elsewhere = url.replace("127.0.0.1", "localhost")
        refused(f"{elsewhere}?ssl_ca={mariadb_tls.folder}/certificate.pem", "certificate is not trusted")


def test_redis_is_refused_or_warned_of_alike(tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    _sign(other)
    with served(TlsRedis) as server:
        assert isinstance(server, TlsRedis)
        url = f"rediss://127.0.0.1:{server.tls_port}/0"
        found = encryption(f"{url}?ssl_ca_certs={server.folder}/certificate.pem")
        assert found == Check("encryption", "OK", "TLS, with a verified certificate")
        assert encryption(f"{url}?insecure_skip_verify=yes").level == "WARN"
        refused(f"{url}?ssl_ca_certs={other}/certificate.pem", r"certificate is not trusted.*ssl_ca_certs=")
    with pytest.raises(InvalidError, match=r"ssl_ca_certs= names no file\. Nothing was opened"):
        make_store(f"{url}?ssl_ca_certs={other}/nowhere.pem")


def _sign(folder: os.PathLike[str]) -> None:
    subprocess.run(SELF_SIGNED, check=True, capture_output=True, cwd=folder)
