"""S3, Google Cloud Storage, Firebase and ConfigMaps, each on a stand-in: promises, lost replies, refusals."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from solocron.errors import ConfigurationError, EmptyStore, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.stores.contract import Store, Tier
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.chain.s3.signing import AMAZON, AccessKey, signed
from solocron.stores.swap.key_store import ABSENT, KeyStore, Swapped
from solocron.stores.swap.store import SwapStore
from solocron.stores.url import make_store
from solocron.testing.conformance import KeyStoreConformance, Make, MakeKeys, StoreConformance
from solocron.testing.conformance.kit import get, job, put
from tests.stores import oracle
from tests.stores.swap.breaking import break_text
from tests.stores.swap.chain.stand_ins import Reply, StandIn
from tests.stores.swap.chain.stand_ins.buckets import BucketStandIn
from tests.stores.swap.chain.stand_ins.cluster import ClusterStandIn
from tests.stores.swap.chain.stand_ins.firebase import FirebaseStandIn

SERVICES = ("s3", "gs", "firebase", "kubernetes")
_LONG = [pytest.param(name, marks=pytest.mark.long) for name in SERVICES]


def start(name: str, folder: Path, *, ignores_conditions: bool = False) -> tuple[StandIn, str, str]:
    """Start a stand-in; return it, a URL, and one with a wrong secret."""
    if name == "firebase":
        database = FirebaseStandIn(ignores_conditions=ignores_conditions)
        return database, database.url(), database.url(secret="wr0ng-p4ss")
    if name == "kubernetes":
        cluster = ClusterStandIn(ignores_conditions=ignores_conditions)
        return cluster, cluster.url(folder), cluster.url(folder, token="wr0ng-p4ss")
    box = BucketStandIn(ignores_conditions=ignores_conditions)
    return box, box.url("f", scheme=name), box.url("f", scheme=name, secret="wr0ng-p4ss")


class Service:
    """A running stand-in and its URLs."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.server, self.url, self.wrong = start(name, folder)

    def keys(self, namespace: str) -> KeyStore:
        store = make_store(self.url, namespace=namespace)
        assert isinstance(store, SwapStore)
        return store._keys


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    service = Service(request.param, tmp_path)
    yield service
    service.server.stop()


class TestKeys(KeyStoreConformance):
    """Every promise of a key store on S3; on the others in the long form, because the chain is the same."""

    @pytest.fixture(params=["s3", *_LONG[1:]])
    def make_keys(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeKeys]:
        service = Service(request.param, tmp_path)
        yield lambda namespace="default": service.keys(namespace)
        service.server.stop()


@pytest.mark.long
class TestStores(StoreConformance):
    @pytest.fixture(params=SERVICES)
    def make(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
        service = Service(request.param, tmp_path)
        yield lambda namespace="default": make_store(service.url, namespace=namespace)
        service.server.stop()

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True

    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make) -> None:
        oracle.same_as_memory(make, seed=0, steps=200)


def made_and_silent(create: Callable[[], Reply]) -> Reply | None:
    create()
    return None


def silent(create: Callable[[], Reply]) -> Reply | None:
    return None


def busy(create: Callable[[], Reply]) -> Reply | None:
    return 503, b"slow down"


def made_and_failed(create: Callable[[], Reply]) -> Reply | None:
    create()
    return 500, b"internal error"


@pytest.mark.parametrize("fault", [made_and_silent, silent, busy, made_and_failed])
def test_a_commit_is_made_once_whatever_becomes_of_its_reply(
    service: Service, fault: Callable[[Callable[[], Reply]], Reply | None]
) -> None:
    with closing(make_store(service.url)) as store:
        assert isinstance(store, SwapStore)
        put(store, job("first"))
        commits = sum("/c/" in name for name in service.server.objects)
        service.server.faults = [fault]
        assert isinstance(store._keys.commit({"k": ABSENT}, {"k": "1"}), Swapped)
        assert sum("/c/" in name for name in service.server.objects) == commits + 1
        assert get(store, Kind.JOB, "first") == job("first")


def test_a_stand_in_lets_a_crowd_wait(service: Service) -> None:
    with ExitStack() as crowd:
        service.server.shutdown()  # clients are no longer accepted: it times out unless there is room
        for _ in range(40):
            client = crowd.enter_context(socket.socket())
            client.settimeout(0.5)
            client.connect(service.server.server_address)


def test_a_conflict_that_s3_tells_of_is_tried_again(tmp_path: Path) -> None:
    service = Service("s3", tmp_path)
    try:
        with closing(service.keys("default")) as keys:
            service.server.faults = [lambda create: (409, b"<Code>ConditionalRequestConflict</Code>")]
            assert keys.commit({}, {"k": "1"}) == Swapped({"k": 1})
    finally:
        service.server.stop()


def test_roots_are_made_and_read_by_the_next_client(service: Service) -> None:
    with closing(service.keys("default")) as keys:
        for i in range(105):
            assert isinstance(keys.commit({}, {"k": str(i), f"own/{i % 7}": "v.1 ä"}), Swapped)
    assert any("/r/" in name for name in service.server.objects)
    with closing(service.keys("default")) as keys:
        assert isinstance(keys, ChainKeys)
        found = keys.fetch(["k", "own/3"]).items
        assert (found["k"].value, found["k"].mark, found["own/3"].value) == ("104", 105, "v.1 ä")
        assert list(keys.namespaces()) == ["default"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_look_alike_that_ignores_the_condition_is_refused_before_anything_is_written(
    name: str, tmp_path: Path
) -> None:
    server, url, _ = start(name, tmp_path, ignores_conditions=True)
    try:
        told = r"ignores the condition.*no job was touched"
        with closing(make_store(url)) as store, pytest.raises(StoreRefused, match=told):
            put(store, job("j"))
        assert server.objects == {}
    finally:
        server.stop()


def test_what_cannot_be_opened_says_why_and_shows_no_secret(service: Service) -> None:
    with closing(make_store(service.wrong)) as store, pytest.raises(StoreRefused, match="refused the") as refused:
        store.open()
    away = service.url.replace(service.server.endpoint, "http://127.0.0.1:1")
    with closing(make_store(away)) as store, pytest.raises(StoreUnavailable, match="cannot be reached") as gone:
        store.open()
    assert "p4ss" not in f"{refused.value} {gone.value}"


def test_looking_makes_no_object(service: Service) -> None:
    with closing(make_store(service.url)) as store:
        with pytest.raises(EmptyStore):
            store.open(read_only=True)
        assert store.checks()
    assert service.server.objects == {}


def test_it_promises_no_more_than_a_stand_in_can_show(service: Service) -> None:
    with closing(make_store(service.url)) as store:
        put(store, job("j"))
        assert store.capabilities.tier is Tier.C
        assert "stand-in" in store.capabilities.why
        assert 0 < store.capabilities.clock_within <= 1_100_000
        assert "WARN" in {check.level for check in store.checks()}


def _rule(action: str, prefix: str = "", status: str = "Enabled") -> str:
    where = f"<Filter><Prefix>{prefix}</Prefix></Filter>"
    rule = f"<Rule><ID>tidy</ID>{where}<Status>{status}</Status>{action}</Rule>"
    return f"<LifecycleConfiguration>{rule}</LifecycleConfiguration>"


_EXPIRES = "<Expiration><Days>30</Days></Expiration>"
_GOOGLES = (
    "<LifecycleConfiguration><Rule><Action><Delete/></Action><Condition><Age>30</Age>{}</Condition></Rule>"
    "</LifecycleConfiguration>"
)


@pytest.mark.parametrize(
    ("scheme", "lifecycle", "level"),
    [
        ("s3", "", "OK"),
        ("s3", None, "OK"),
        ("s3", _rule(_EXPIRES), "FAIL"),
        ("s3", _rule("<Transition><Days>30</Days><StorageClass>GLACIER</StorageClass></Transition>"), "FAIL"),
        ("s3", _rule(_EXPIRES, "f/"), "FAIL"),
        ("s3", _rule(_EXPIRES, "f/default/c/"), "FAIL"),
        ("s3", _rule(_EXPIRES, "logs/"), "OK"),
        ("s3", _rule(_EXPIRES, status="Disabled"), "OK"),
        (
            "s3",
            _rule("<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>"),
            "OK",
        ),
        ("s3", _rule("<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"), "OK"),
        ("gs", _GOOGLES.format(""), "FAIL"),
        ("gs", _GOOGLES.format("<MatchesPrefix>logs/</MatchesPrefix>"), "OK"),
        ("gs", _GOOGLES.format("<IsLive>false</IsLive>"), "OK"),
        ("gs", "<LifecycleConfiguration/>", "OK"),
    ],
)
def test_doctor_fails_where_a_rule_of_the_bucket_would_remove_commits(
    scheme: str, lifecycle: str | None, level: str
) -> None:
    box = BucketStandIn()
    box.settings["lifecycle"] = lifecycle
    try:
        with closing(make_store(box.url("f", scheme=scheme))) as store:
            found = {check.name: check for check in store.checks()}
        assert found["lifecycle"].level == level
        assert ("cannot be seen" in found["lifecycle"].detail) == (lifecycle is None)
        assert "versioning" not in found
    finally:
        box.stop()


@pytest.mark.parametrize(("open_to_all", "level"), [(False, "OK"), (True, "FAIL")])
def test_doctor_fails_where_strangers_may_read_the_database(open_to_all: bool, level: str) -> None:
    database = FirebaseStandIn()
    database.open_to_all = open_to_all
    try:
        with closing(make_store(database.url())) as store:
            assert {check.name: check.level for check in store.checks()}["rules"] == level
    finally:
        database.stop()


def test_doctor_names_the_rights_that_an_account_lacks(tmp_path: Path) -> None:
    cluster = ClusterStandIn()
    try:
        with closing(make_store(cluster.url(tmp_path))) as store:
            assert {check.name: check.level for check in store.checks()}["rights"] == "OK"
            cluster.forbidden = {"list", "delete"}
            told = next(check for check in store.checks() if check.name == "rights")
        assert (told.level, told.detail) == ("FAIL", "the account may not list, delete configmaps in jobs")
        assert cluster.objects == {}
    finally:
        cluster.stop()


def test_doctor_warns_of_old_versions_that_are_kept() -> None:
    box = BucketStandIn()
    box.settings["versioning"] = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    try:
        with closing(make_store(box.url("f"))) as store:
            assert {check.name: check.level for check in store.checks()}["versioning"] == "WARN"
    finally:
        box.stop()


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("s3:///folder?region=x", "the host is a bucket"),
        ("s3://bucket/folder", "region of the bucket is missing"),
        ("s3://key@bucket/folder?region=x", "comes with its secret"),
        ("gs://bucket/folder", "HMAC key of a service account"),
        ("s3://bucket/f?region=x&endpoint=localhost", "begins with http"),
        ("s3://bucket/f?regoin=x", "did you mean 'region'"),
        ("firebase://secret:x@a.b.c/path", "a project and its region"),
        ("firebase://project.region/path", "secret of the database is missing"),
        ("firebase://secret:x@project.region/a.b", "a path has no"),
        ("kubernetes:///x", "the host is a namespace"),
        ("kubernetes://jobs/Not_Lower", "the path begins names"),
        ("kubernetes://jobs?endpoint=x", "begins with http"),
    ],
)
def test_a_url_with_a_mistake_is_refused(url: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_store(url)


def test_without_the_token_of_an_account_the_cluster_is_refused(tmp_path: Path) -> None:
    url = f"kubernetes://jobs?endpoint=http://127.0.0.1:1&token_file={tmp_path / 'none'}"
    with closing(make_store(url)) as store, pytest.raises(StoreRefused, match="Run inside a Pod"):
        store.open()


def test_a_call_is_signed_as_amazons_own_library_signs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in knows the signature from the code under test, so something else has to check it."""
    at = datetime(2026, 11, 17, 20, 0, 0, tzinfo=UTC)
    body, query = b"{}", {"list-type": "2", "prefix": "a/b c+d"}
    made = signed(
        AMAZON,
        AccessKey("id", "secret", "token"),
        "eu-central-1",
        method="PUT",
        host="box.s3.amazonaws.com",
        path="/f/c/1",
        query=query,
        headers={"If-None-Match": "*"},
        body=body,
        at=at,
    )
    request = AWSRequest("PUT", "https://box.s3.amazonaws.com/f/c/1", params=query, data=body)
    request.headers["If-None-Match"] = "*"
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_: at)
    S3SigV4Auth(Credentials("id", "secret", "token"), "s3", "eu-central-1").add_auth(request)
    assert made["Authorization"] == request.headers["Authorization"]
