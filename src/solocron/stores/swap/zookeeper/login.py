"""Logs in by SASL DIGEST-MD5, ZooKeeper's own way of users with passwords (RFC 2831)."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

__all__ = ["is_servers_answer", "response_to"]

_REALM = "zk-sasl-md5"
"""ZooKeeper names this realm whatever the server is called."""
_SERVICE = f"zookeeper/{_REALM}"


def response_to(challenge: bytes, user: str, password: str) -> tuple[bytes, str]:
    """Return the answer to a server's challenge, and what the server must answer to that."""
    words = {
        name: quoted or plain
        for name, quoted, plain in re.findall(r'([\w-]+)=(?:"([^"]*)"|([^,]*))', challenge.decode())
    }
    nonce, realm = words.get("nonce", ""), words.get("realm", _REALM)
    ours = secrets.token_urlsafe(16)

    def proof(verb: str) -> str:
        secret = _md5(f"{user}:{realm}:{password}".encode())
        first = _md5(secret + f":{nonce}:{ours}".encode()).hex()
        second = _md5(f"{verb}:{_SERVICE}".encode()).hex()
        return _md5(f"{first}:{nonce}:00000001:{ours}:auth:{second}".encode()).hex()

    parts = (
        'charset=utf-8', f'username="{_escaped(user)}"', f'realm="{realm}"', f'nonce="{nonce}"', "nc=00000001",
        f'cnonce="{ours}"', f'digest-uri="{_SERVICE}"', "maxbuf=65536", f"response={proof('AUTHENTICATE')}", "qop=auth",
    )  # fmt: skip
    return ",".join(parts).encode(), proof("")


def is_servers_answer(answer: bytes, expected: str) -> bool:
    """Return whether the server knows the password too."""
    return hmac.compare_digest(answer, f"rspauth={expected}".encode())


def _escaped(user: str) -> str:
    return user.replace("\\", "\\\\").replace('"', '\\"')


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()  # the mechanism is older than its hash is broken
