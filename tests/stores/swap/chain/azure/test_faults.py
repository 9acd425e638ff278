"""Azure Blob Storage, on Azurite: the fault suite, a client that sleeps while its number is deleted, TLS, refusals."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode, urlsplit

import pytest

from solocron.clock import SystemClock
from solocron.errors import ConfigurationError, EmptyStore, StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import Store, Tier, Verdict
from solocron.stores.swap.chain.azure import AzureBlobStore
from solocron.stores.swap.chain.azure.address import AzureAddress
from solocron.stores.swap.chain.azure.blobs import AzureBlobs
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.chain.state import ChainPace
from solocron.stores.swap.key_store import EXISTS, Swapped
from solocron.stores.url import make_store, parse
from solocron.testing.conformance.kit import get, job, put
from solocron.testing.faults import StoreFaults, Victim
from tests.servers import Azurite
from tests.servers.azurite import ACCOUNT, KEY
from tests.stores.swap.chain.world import at_once
from tests.stores.test_tls import SELF_SIGNED

needs_server = pytest.mark.long
"""The server is three hundred packages of npm: `make test-azurite`."""


class ReadyStore(AzureBlobStore):
    """Tries the service when it is opened, so that a fault strikes a commit and not the first call of a process."""

    def open(self, *, read_only: bool = False) -> None:
        super().open(read_only=read_only)
        if not read_only:
            self._keys.ask_time()


class AzureVictim(Victim):
    """Its URLs name host and port where a proxy can be put; the store's have them in `endpoint`."""

    def __init__(self, server: Azurite) -> None:
        self.server = server
        parts = parse(server.fresh_url())
        credentials = server.fresh_url().partition("://")[2].partition("@")[0]
        self.url = f"azblob://{credentials}@127.0.0.1:{server.port}{parts.path}"

    def make(self, url: str, *, lease: timedelta) -> Store:
        parts = urlsplit(url)
        credentials, _, place = parts.netloc.rpartition("@")
        told = f"azblob://{credentials}@{ACCOUNT}{parts.path}?endpoint=http://{place}/{ACCOUNT}"
        return ReadyStore(parse(told), lease=lease)

    def kill(self) -> None:
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def guarded(self) -> Iterator[str]:
        yield self.url

    def refused(self, guarded: str) -> list[str]:
        wrong = "azblob://key:d3JvbmctazN5@"
        return [wrong + guarded.rpartition("@")[2], guarded.replace("/solocron/", "/missing/")]

    def broken(self, guarded: str) -> list[str]:
        credentials, path = guarded.rpartition("@")[0], urlsplit(guarded).path
        return [f"{credentials}@127.0.0.1:1{path}", f"{credentials}@no.such.host.invalid:80{path}"]


@needs_server
class TestAzureFaults(StoreFaults):
    """The chain reads the number and sends the very same commit again, so nothing stays unknown."""

    lost_reply = Verdict.APPLIED
    lost_request = Verdict.APPLIED

    @pytest.fixture
    def victim(self, azurite: Azurite) -> Victim:
        return AzureVictim(azurite)


@needs_server
def test_a_client_that_slept_while_its_number_was_deleted_commits_at_the_head(azurite: Azurite) -> None:
    """For real: the blobs are gone, and the sleeper's clock has run on."""
    url = azurite.fresh_url()
    clock, slept = SystemClock(), [0.0]
    pace = ChainPace(commits=4, kept=0.0, trusted=1.0)

    def client() -> ChainKeys:
        blobs = AzureBlobs(AzureAddress.of(parse(url), timeout=5.0))
        return ChainKeys(blobs, pace=pace, boot=lambda: clock.boot() + slept[0], aside=at_once)

    with closing(client()) as sleeper, closing(client()) as other:
        for i in range(3):
            assert isinstance(sleeper.commit({}, {"mine": str(i)}), Swapped)
        for i in range(40):
            assert isinstance(other.commit({}, {"theirs": str(i)}), Swapped)
        assert other.objects.get("d/default/c/0000000000000004") is None
        slept[0] = 7_200.0
        assert isinstance(sleeper.commit({"mine": EXISTS}, {"late": "1"}), Swapped)
        assert other.fetch(["late"]).items["late"].mark == 44
        assert other.objects.get("d/default/c/0000000000000004") is None


@needs_server
def test_looking_makes_no_blob(azurite: Azurite) -> None:
    with closing(make_store(azurite.fresh_url())) as store:
        with pytest.raises(EmptyStore):
            store.open(read_only=True)
        assert store.checks()
        assert store.capabilities.tier is Tier.B
    blobs = AzureBlobs(AzureAddress.of(parse(azurite.fresh_url()), timeout=5.0))
    with closing(blobs):
        assert blobs.names("", 10) == []


@needs_server
def test_a_certificate_is_verified(openssl: object) -> None:
    class Secure(Azurite):
        def prepare(self) -> None:
            subprocess.run(SELF_SIGNED, cwd=self.folder, check=True, capture_output=True)
            self.settings |= {"cert": f"{self.folder}/certificate.pem", "key": f"{self.folder}/key.pem"}

    with Secure() as server:
        url = server.fresh_url()
        with closing(make_store(url)) as store, pytest.raises(StoreRefused, match="certificate"):
            store.open()
        with closing(make_store(f"{url}&ca={server.folder}/certificate.pem")) as store:
            put(store, job("j"))
        with closing(make_store(f"{url}&insecure_tls=1")) as store:
            assert {check.name: check.level for check in store.checks()}["encryption"] == "WARN"


@needs_server
def test_a_refusal_says_what_to_do_and_shows_no_secret(azurite: Azurite) -> None:
    cases = {
        azurite.url_of("solocron", key="d3JvbmctazN5"): "refused the account's key",
        azurite.url_of("missing"): "az storage container create",
    }
    for url, told in cases.items():
        with closing(make_store(url)) as store, pytest.raises(StoreRefused, match=told) as refused:
            store.open()
        assert KEY not in str(refused.value)
        assert "d3JvbmctazN5" not in str(refused.value)


def sas(permissions: str, *, hours: float = 1.0) -> str:
    """Return a SAS token for the container of the tests, as `az storage container generate-sas` does."""
    version, expiry = "2021-12-02", datetime.now(UTC) + timedelta(hours=hours)
    fields = {"sp": permissions, "se": f"{expiry:%Y-%m-%dT%H:%M:%SZ}", "sv": version, "sr": "c"}
    resource = f"/blob/{ACCOUNT}/solocron"
    told = [permissions, "", fields["se"], resource, "", "", "", version, "c", *[""] * 7]
    digest = hmac.new(base64.b64decode(KEY), "\n".join(told).encode(), hashlib.sha256).digest()
    return urlencode({**fields, "sig": base64.b64encode(digest).decode()})


@needs_server
def test_a_sas_token_needs_the_rights_of_the_page_and_no_other(azurite: Azurite) -> None:
    folder = azurite.fresh_url().partition("/solocron/")[2].partition("?")[0]

    def url(token: str) -> str:
        secret = quote(token, safe="")
        return f"azblob://sas:{secret}@{ACCOUNT}/solocron/{folder}?endpoint={azurite.endpoint}"

    with closing(make_store(url(sas("rcwdl")))) as store:
        put(store, job("j"))
        assert get(store, Kind.JOB, "j") is not None
        assert store.checks()
    for token, told in (
        (sas("rl"), "needs read, create, write"),
        (sas("rcwdl", hours=-1.0), "has expired|refused the SAS"),
    ):
        with closing(make_store(url(token))) as store, pytest.raises(StoreRefused, match=told) as refused:
            put(store, job("k"))
        assert token not in str(refused.value)
        assert "sig=" not in str(refused.value)
    with closing(make_store(url(sas("rcwdl")))) as store:
        assert get(store, Kind.JOB, "k") is None


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("azblob://key:a2V5@/box", "storage account"),
        ("azblob://key:a2V5@account/", "names a container"),
        ("azblob://account/container", "SAS token is missing"),
        ("azblob://me:a2V5@account/container", "SAS token is missing"),
        ("azblob://key:a2V5@account/container?endpoint=localhost", "begins with http"),
        ("azblob://key:a2V5@account/container?endpont=http://x", "did you mean 'endpoint'"),
    ],
)
def test_a_url_with_a_mistake_is_refused(url: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_store(url)
