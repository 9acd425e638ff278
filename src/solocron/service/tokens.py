"""Tokens: 256 random bits, shown once, kept as a hash in a file that other users cannot use."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from solocron.errors import ConfigurationError, ConflictError
from solocron.jobs.checks import NAME
from solocron.service.private_file import identity_of, open_private
from solocron.service.roles import Identity, Role

__all__ = ["FixedTokens", "JoinedTokens", "TokenEntry", "TokenFile", "Tokens", "add_token", "hash_of", "new_token"]

_LARGEST = 64 * 1024
_TOKEN = re.compile(r"solocron_[A-Za-z0-9_-]{43}")
_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NOTHING = "Nothing was started."
_WHAT = "token file"


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A line of the file: `name role sha256`, and after it the namespaces of the token, if it is not for all."""

    name: str
    role: Role
    digest: str
    namespaces: frozenset[str] | None = None


class Tokens:
    """Tells by its token who a caller is."""

    def entries(self) -> Sequence[TokenEntry]:
        """Return every token that is valid now."""
        raise NotImplementedError

    def identify(self, token: str) -> Identity | None:
        """Return the identity of a token; None if it is not valid. Every entry is compared, in constant time."""
        if not _TOKEN.fullmatch(token):
            return None
        digest, found = hash_of(token), None
        for entry in self.entries():
            if hmac.compare_digest(entry.digest, digest):
                found = Identity(entry.name, entry.role, entry.namespaces)
        return found


class FixedTokens(Tokens):
    """Tokens of this process alone, such as the one that `solocron serve` prints."""

    def __init__(self, *entries: TokenEntry) -> None:
        self._entries = entries

    def entries(self) -> Sequence[TokenEntry]:
        return self._entries


class JoinedTokens(Tokens):
    """Tokens of several places; a place that cannot be read does not close the others."""

    def __init__(self, *places: Tokens) -> None:
        self._places = places

    def entries(self) -> Sequence[TokenEntry]:
        return tuple(entry for place in self._places for entry in place.entries())

    def identify(self, token: str) -> Identity | None:
        found, broken = None, None
        for place in self._places:
            try:
                found = place.identify(token) or found
            except ConfigurationError as error:
                broken = error
        if found is None and broken is not None:
            raise broken
        return found


class TokenFile(Tokens):
    """Tokens of a file. It is read again when it changes, so that a token that is taken out ends at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._seen: tuple[int, ...] | None = None
        self._entries: tuple[TokenEntry, ...] = ()

    def entries(self) -> Sequence[TokenEntry]:
        """Return the entries; raise ConfigurationError if the file cannot be trusted, so that no caller is known."""
        with self._lock:
            seen, self._seen = self._seen, None
            state = identity_of(self.path, what=_WHAT, untouched=_NOTHING)
            if state != seen:
                self._entries = _parse(self.path, _read(self.path))
            self._seen = state
            return self._entries


def new_token() -> str:
    """Return a new token."""
    return f"solocron_{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """Return what is kept of a token. Its 256 random bits cannot be guessed, so a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest()


def add_token(path: Path, name: str, role: Role, namespaces: Collection[str] = ()) -> str:
    """Append a new token to the file, which is created for its owner alone, and return the token.

    Without `namespaces` it is for every namespace.
    """
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            f"name {name!r:.60} cannot be used: 1 to 128 letters, digits, '_', '.', ':' or '-'. No token was made."
        )
    for one in namespaces:
        if not _NAMESPACE.fullmatch(one):
            raise ConfigurationError(
                f"namespace {one!r:.80} is not a name: 1 to 64 letters, digits, '_', '.' or '-'. No token was made."
            )
    descriptor = open_private(path, what=_WHAT, untouched="No token was made.", mode="append")
    with os.fdopen(descriptor, "r+", encoding="ascii", errors="replace") as file:
        content = file.read(_LARGEST)
        if any(entry.name == name for entry in _parse(path, content)):
            raise ConflictError(f"{path} has a token {name!r} already; take its line out first. No token was made.")
        token = new_token()
        lead = "" if not content or content.endswith("\n") else "\n"
        bound = f" {','.join(sorted(set(namespaces)))}" if namespaces else ""
        file.write(f"{lead}{name} {role} {hash_of(token)}{bound}\n")
    return token


def _read(path: Path) -> str:
    with os.fdopen(open_private(path, what=_WHAT, untouched=_NOTHING), encoding="ascii", errors="replace") as file:
        return file.read(_LARGEST + 1)


def _parse(path: Path, content: str) -> tuple[TokenEntry, ...]:
    if len(content) > _LARGEST:
        raise ConfigurationError(f"the token file {path} is larger than {_LARGEST} bytes. {_NOTHING}")
    found: dict[str, TokenEntry] = {}
    for number, line in enumerate(content.splitlines(), 1):
        words = line.split()
        if not words or line.lstrip().startswith("#"):
            continue
        good = len(words) in (3, 4) and NAME.fullmatch(words[0]) and words[1] in set(Role)
        bound = words[3].split(",") if len(words) == 4 else []
        if not good or not re.fullmatch(r"[0-9a-f]{64}", words[2]) or not all(map(_NAMESPACE.fullmatch, bound)):
            raise ConfigurationError(
                f"the token file {path}, line {number}, cannot be read: it must be `name role sha256` and "
                f"perhaps namespaces, as `solocron token new` writes it; roles are {', '.join(Role)}. {_NOTHING}"
            )
        if words[0] in found:
            raise ConfigurationError(f"the token file {path}, line {number}: {words[0]} is there twice. {_NOTHING}")
        found[words[0]] = TokenEntry(words[0], Role(words[1]), words[2], frozenset(bound) or None)
    return tuple(found.values())
