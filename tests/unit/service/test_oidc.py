"""OIDC: tokens of a real issuer on loopback, with TLS. One is right; every other one is refused."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.server
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from solocron import EmptyStore, Scheduler
from solocron.errors import ConfigurationError, MissingExtra
from solocron.http_tick import TickEndpoint, oidc
from solocron.service.oidc import Oidc, OidcVerifier
from solocron.service.roles import Role
from tests.unit.service.test_adapters import ask, ask_wsgi, scope

AUDIENCE, SUBJECT = "https://app.example.com/tick", "system:serviceaccount:jobs:cron"


@dataclass
class Issuer:
    """An issuer, its keys, and the clock by which its verifier looks."""

    url: str
    ca_file: str
    keys: dict[str, Any]
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    now: float = 0.0

    def publish(self, *kids: str) -> None:
        self.answers["/.well-known/openid-configuration"] = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        self.answers["/keys"] = {"keys": [_public(kid, self.keys[kid]) for kid in kids]}

    def verifier(self, **changes: Any) -> OidcVerifier:
        given = {"issuer": self.url, "audience": AUDIENCE, "subject": SUBJECT, "ca_file": self.ca_file}
        return OidcVerifier(Oidc(**given | changes), clock=lambda: self.now)

    def token(self, kid: str = "rsa", *, alg: str = "RS256", headers: Any = None, **changes: Any) -> str:
        at = int(time.time())
        claims = {
            "iss": self.url, "aud": AUDIENCE, "sub": SUBJECT, "iat": at, "exp": at + 300, "email": "cron@example.com",
            "email_verified": True,
        }  # fmt: skip
        claims = {name: value for name, value in (claims | changes).items() if value is not ...}
        return jwt.encode(claims, self.keys[kid], algorithm=alg, headers={"kid": kid} | (headers or {}))


def _public(kid: str, key: Any) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}


@pytest.fixture(scope="module")
def keys() -> dict[str, Any]:
    made: dict[str, Any] = {kid: rsa.generate_private_key(65537, 2048) for kid in ("rsa", "next", "stranger")}
    return made | {"ec": ec.generate_private_key(ec.SECP256R1())}


@pytest.fixture(scope="module")
def certificate(keys: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(keys["rsa"].public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(keys["rsa"], hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("oidc") / "issuer.pem"
    private = keys["rsa"].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return file


@pytest.fixture
def issuer(keys: dict[str, Any], certificate: Path) -> Iterator[Issuer]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            answer = made.answers.get(self.path)
            self.send_response(302 if isinstance(answer, str) else 404 if answer is None else 200)
            if isinstance(answer, str):
                self.send_header("Location", answer)
            self.end_headers()
            if not isinstance(answer, str):
                self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *given: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made = Issuer(f"https://127.0.0.1:{server.server_port}", str(certificate), keys)
    made.publish("rsa", "ec")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(("kid", "alg"), [("rsa", "RS256"), ("ec", "ES256")])
def test_a_good_token_gives_the_role_tick_and_the_name_of_its_subject(issuer: Issuer, kid: str, alg: str) -> None:
    found = issuer.verifier().find(issuer.token(kid, alg=alg))
    assert found is not None
    assert (found.identity.name, found.identity.role) == (SUBJECT, Role.TICK)


def test_a_good_token_may_have_a_list_of_one_audience_and_a_verified_email(issuer: Issuer) -> None:
    verifier = issuer.verifier(subject=None, email="cron@example.com")
    found = verifier.find(issuer.token(aud=[AUDIENCE]))
    assert found is not None
    assert found.identity.name == "cron@example.com"


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"},
        {"iss": ...},
        {"aud": "https://other.example.com"},
        {"aud": [AUDIENCE, "https://other.example.com"]},
        {"aud": []},
        {"aud": ...},
        {"aud": AUDIENCE + "/"},
        {"sub": SUBJECT + "x"},
        {"sub": "prefix:" + SUBJECT},
        {"sub": ...},
        {"exp": -120},
        {"exp": ...},
        {"exp": "tomorrow"},
        {"nbf": 600},
        {"iat": 600},
        {"iat": ...},
    ],
    ids=str,
)
def test_a_wrong_claim_is_refused(issuer: Issuer, changes: dict[str, Any]) -> None:
    """Times are seconds from now."""
    changes = {name: time.time() + value if isinstance(value, int) else value for name, value in changes.items()}
    try:
        token = issuer.token(**changes)
    except TypeError:  # the library refuses to make such a token, so it is made by hand
        token = _signed(issuer, changes)
    assert issuer.verifier().find(token) is None


def _signed(issuer: Issuer, changes: dict[str, Any]) -> str:
    head, body, _ = issuer.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "==")) | changes
    text = f"{head}.{_packed(claims)}"
    return f"{text}.{_b64(RSAAlgorithm(RSAAlgorithm.SHA256).sign(text.encode(), issuer.keys['rsa']))}"


def _packed(value: Any) -> str:
    return _b64(json.dumps(value).encode())


def _b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


@pytest.mark.parametrize(
    "changes", [{"email": "evil@example.com"}, {"email_verified": False}, {"email_verified": "true"}]
)
def test_an_email_that_is_another_or_not_verified_is_refused(issuer: Issuer, changes: dict[str, Any]) -> None:
    assert issuer.verifier(subject=None, email="cron@example.com").find(issuer.token(**changes)) is None


def test_a_token_without_a_signature_is_refused(issuer: Issuer) -> None:
    body = issuer.token().split(".")[1]
    for alg in ("none", "None", "NONE", ""):
        assert issuer.verifier().find(f"{_packed({'alg': alg, 'kid': 'rsa'})}.{body}.") is None


@pytest.mark.parametrize("form", ["pem", "jwk"])
def test_the_public_key_is_no_secret_to_sign_with(issuer: Issuer, form: str) -> None:
    """HS256 with the public key as the shared secret: the oldest trick against this kind of token."""
    public = issuer.keys["rsa"].public_key()
    secret = json.dumps(_public("rsa", issuer.keys["rsa"])).encode()
    if form == "pem":
        secret = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    text = f"{_packed({'alg': 'HS256', 'kid': 'rsa'})}.{issuer.token().split('.')[1]}"
    assert issuer.verifier().find(f"{text}.{_b64(hmac.digest(secret, text.encode(), hashlib.sha256))}") is None


def test_another_algorithm_of_the_same_key_is_refused(issuer: Issuer) -> None:
    for alg in ("RS384", "RS512", "PS256"):
        assert issuer.verifier().find(issuer.token(alg=alg)) is None
    head, rest = issuer.token().split(".", 1)
    assert issuer.verifier().find(f"{_packed({'alg': 'ES256', 'kid': 'rsa'})}.{rest}") is None
    assert head


def test_a_key_of_a_stranger_is_refused_under_any_name(issuer: Issuer) -> None:
    assert issuer.verifier().find(issuer.token("stranger")) is None
    assert issuer.verifier().find(issuer.token("stranger", headers={"kid": "rsa"})) is None
    embedded = {"jwk": _public("stranger", issuer.keys["stranger"]), "kid": "rsa"}
    assert issuer.verifier().find(issuer.token("stranger", headers=embedded)) is None
    assert issuer.verifier().find(issuer.token("stranger", headers={"jku": "https://evil.example/keys"})) is None


@pytest.mark.parametrize("odd", ["", ".", "..", "a.b.c", "x" * 9000, "é.é.é", "a" * 20 + ".." + "b" * 20])
def test_what_is_no_token_is_refused(issuer: Issuer, odd: str) -> None:
    assert issuer.verifier().find(odd) is None


def test_rotated_keys_are_asked_for_once_a_minute_and_old_ones_end_after_ten(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    old, new = issuer.token("rsa"), issuer.token("next")
    assert verifier.find(old) is not None
    issuer.publish("next")
    for _ in range(5):
        assert verifier.find(new) is None, "asked less than a minute ago"
    assert len(issuer.asked) == 2
    assert verifier.find(old) is not None, "its key is still known"
    issuer.now = 61.0
    assert verifier.find(new) is not None
    assert verifier.find(old) is None, "its key was withdrawn"
    issuer.publish()
    issuer.now = 61.0 + 600.0
    assert verifier.find(new) is None


def test_while_the_issuer_is_away_known_keys_are_good_for_ten_minutes_and_then_nothing_is(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    verifier, token = issuer.verifier(), issuer.token()
    assert verifier.find(token) is not None
    issuer.answers.clear()
    issuer.now = 599.0
    assert verifier.find(token) is not None
    issuer.now = 601.0
    with caplog.at_level(logging.WARNING, logger="solocron.service"):
        assert verifier.find(token) is None
    assert "the issuer's keys cannot be had" in caplog.text
    assert token not in caplog.text
    issuer.publish("rsa")
    issuer.now = 662.0
    assert verifier.find(token) is not None, "it is asked again"


@pytest.mark.parametrize(
    ("place", "answer"),
    [
        ("/.well-known/openid-configuration", "/elsewhere"),
        ("/.well-known/openid-configuration", {"issuer": "https://evil.example", "jwks_uri": "x"}),
        ("/.well-known/openid-configuration", {"issuer": 1}),
        ("/.well-known/openid-configuration", []),
        ("/keys", "/elsewhere"),
        ("/keys", {"keys": "x" * 70_000}),
        ("/keys", {"keys": [1, {}, {"kid": "rsa", "kty": "oct", "k": "c2VjcmV0"}, {"kid": "rsa", "kty": "RSA"}]}),
        ("/keys", {"keys": 1}),
    ],
)
def test_an_issuer_that_answers_anything_else_lets_no_one_in(issuer: Issuer, place: str, answer: Any) -> None:
    issuer.answers[place] = answer
    assert issuer.verifier().find(issuer.token()) is None


def test_keys_in_clear_are_not_fetched(issuer: Issuer) -> None:
    found = {"issuer": issuer.url, "jwks_uri": issuer.url.replace("https", "http") + "/keys"}
    issuer.answers["/.well-known/openid-configuration"] = found
    assert issuer.verifier().find(issuer.token()) is None


def test_an_issuer_whose_certificate_is_not_trusted_lets_no_one_in(issuer: Issuer) -> None:
    assert issuer.verifier(ca_file=None).find(issuer.token()) is None
    assert issuer.asked == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"issuer": "http://accounts.example"}, "not an https URL"),
        ({"issuer": "accounts.example"}, "not an https URL"),
        ({"audience": ""}, "audience"),
        ({"subject": None}, "subject or email"),
        ({"email": "a@b"}, "subject or email"),
        ({"ca_file": "/nowhere.pem"}, "cannot be used"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(issuer: Issuer, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        issuer.verifier(**changes)
    assert "Nothing is served" in str(caught.value)


def test_without_the_extra_it_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jwt", None)
    with pytest.raises(MissingExtra, match=r'pip install "solocron\[oidc\]"'):
        OidcVerifier(Oidc(issuer="https://i.example", audience="a", subject="s"))


def test_such_a_token_ticks_and_does_nothing_else(issuer: Issuer, tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}")
    scheduler.every("1000d", name="bill")(lambda: None)
    wanted = Oidc(issuer=issuer.url, audience=AUDIENCE, subject=SUBJECT, ca_file=issuer.ca_file)
    app = scheduler.wsgi(tick=True, oidc=wanted)
    good, bad = issuer.token(), issuer.token("stranger", headers={"kid": "rsa"})

    def sent(path: str, method: str, token: str) -> int:
        return ask_wsgi(app, path, REQUEST_METHOD=method, HTTP_AUTHORIZATION=f"Bearer {token}")[0]

    assert sent("/api/v1/tick", "POST", good) == 200
    assert sent("/api/v1/tick", "POST", bad) == 401
    assert len(issuer.asked) == 2
    assert sent("/api/v1/status", "GET", good) == 401
    assert sent("/api/v1/jobs/bill/pause", "POST", good) == 401
    assert len(issuer.asked) == 2, "no other route makes us ask the issuer"
    app.close()


def test_the_endpoint_of_a_tick_takes_the_callers_that_it_names(issuer: Issuer, tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}")
    scheduler.every("1000d", name="bill")(lambda: None)
    known: Any = {"issuer": issuer.url, "audience": AUDIENCE, "ca_file": issuer.ca_file}
    by_email = TickEndpoint(scheduler, verify=oidc(**known, emails=["ops@example.com", "cron@example.com"]))
    by_subject = TickEndpoint(scheduler, verify=oidc(**known, subject=SUBJECT))

    def sent(endpoint: TickEndpoint, **changes: Any) -> int:
        return endpoint.handle("POST", {"Authorization": f"Bearer {issuer.token(**changes)}"}).status

    wrong: list[Any] = [
        {"email_verified": False},
        {"email": "eve@example.com"},
        {"aud": "other"},
        {"exp": 1},
        {"kid": "stranger"},
    ]
    assert [sent(by_email, **changes) for changes in wrong] == [403] * len(wrong)
    assert sent(by_subject, sub="system:serviceaccount:jobs:other") == 403
    with pytest.raises(EmptyStore):
        scheduler.jobs()  # nothing was looked at
    assert (sent(by_email), sent(by_email, email="ops@example.com"), sent(by_subject)) == (200, 200, 200)
    assert [job.name for job in scheduler.jobs()] == ["bill"]
    scheduler.stop()


def test_an_issuer_is_asked_beside_the_event_loop(issuer: Issuer, tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}")
    scheduler.every("1000d", name="bill")(lambda: None)
    wanted = Oidc(issuer=issuer.url, audience=AUDIENCE, subject=SUBJECT, ca_file=issuer.ca_file)
    app = scheduler.asgi(tick=True, oidc=wanted)

    async def ticks() -> list[int]:
        tokens = (issuer.token(), issuer.token(aud="other"), "x.y.z")
        asked = [scope("/api/v1/tick", method="POST", authorization=f"Bearer {token}") for token in tokens]
        return [(await ask(app, given))[0] for given in asked]

    assert asyncio.run(ticks()) == [200, 401, 401]
    app.close()
