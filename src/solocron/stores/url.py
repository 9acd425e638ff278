"""From a store's URL to its store. The URL is a secret: it masks itself wherever it could be shown.

Drivers are imported when a store of theirs is made, so that no program pays for, or needs, the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qsl, quote, unquote

from solocron import surroundings
from solocron.errors import ConfigurationError, MissingExtra, StoreUnavailable
from solocron.near import did_you_mean, nearest
from solocron.stores.credentials import printed_by, written_in

if TYPE_CHECKING:
    from solocron.stores.contract import Store

__all__ = [
    "IDENTIFIER",
    "Renewed",
    "Secret",
    "StoreUrl",
    "hidden",
    "make_store",
    "parse",
    "revealed",
    "url_of_environment",
]

IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,47}")
"""What may become part of a table's name; everything else is refused before it gets near a statement."""

_LEASE = timedelta(seconds=15)
_MASK = "***"


@dataclass(frozen=True, slots=True)
class _Scheme:
    """Where the store of a scheme is, which extra brings its driver, and under which name it is imported."""

    module: str
    store: str
    extra: str | None = None
    driver: str | None = None


_POSTGRES = _Scheme("solocron.stores.sql.postgres", "PostgresStore", "postgres", "psycopg")
_MYSQL = _Scheme("solocron.stores.sql.mysql", "MySQLStore", "mysql", "pymysql")
_REDIS = _Scheme("solocron.stores.redis", "RedisStore", "redis", "redis")
_ETCD = _Scheme("solocron.stores.swap.etcd", "EtcdStore")
_NATS = _Scheme("solocron.stores.swap.nats", "NatsStore")
_ZOOKEEPER = _Scheme("solocron.stores.swap.zookeeper", "ZooStore")
_MONGODB = _Scheme("solocron.stores.swap.mongodb", "MongoStore", "mongodb", "pymongo")
_DYNAMODB = _Scheme("solocron.stores.swap.dynamodb", "DynamoStore", "dynamodb", "botocore")
_AZURE = _Scheme("solocron.stores.swap.chain.azure", "AzureBlobStore")
_S3 = _Scheme("solocron.stores.swap.chain.s3", "BucketStore", "s3", "botocore")
_SCHEMES = {
    "sqlite": _Scheme("solocron.stores.sql.sqlite", "SQLiteStore"),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "redis": _REDIS,
    "rediss": _REDIS,
    "valkey": _REDIS,
    "etcd": _ETCD,
    "etcds": _ETCD,
    "nats": _NATS,
    "tls": _NATS,
    "zookeeper": _ZOOKEEPER,
    "zookeepers": _ZOOKEEPER,
    "dynamodb": _DYNAMODB,
    "mongodb": _MONGODB,
    "mongodb+srv": _MONGODB,
    "azblob": _AZURE,
    "s3": _S3,
    "gs": _Scheme("solocron.stores.swap.chain.s3", "BucketStore"),
    "firebase": _Scheme("solocron.stores.swap.chain.firebase", "FirebaseStore"),
    "kubernetes": _Scheme("solocron.stores.swap.chain.kubernetes", "ConfigMapStore"),
    "memory": _Scheme("solocron.stores.memory", "MemoryStore"),
}
_ALIASES = {
    "sqlite3": "sqlite",
    "pg": "postgresql",
    "psql": "postgresql",
    "maria": "mariadb",
    "file": "sqlite",
    "zk": "zookeeper",
    "mongo": "mongodb",
    "azure": "azblob",
    "gcs": "gs",
    "k8s": "kubernetes",
}


class Secret:
    """A string that is never shown by accident: `repr`, `str`, formats, errors and pickles see it masked."""

    __slots__ = ("_text",)

    def __init__(self, text: str | Secret) -> None:
        self._text = text.reveal() if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """Return the string itself, for the driver alone."""
        return self._text

    @property
    def last(self) -> str:
        """The text as it was last revealed, for what must not be shown."""
        return self._text

    @property
    def masked(self) -> str:
        """What may be shown: of a URL scheme, user, host and path; of anything else nothing."""
        scheme, separator, rest = self._text.partition("://")
        if not separator or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]{0,31}", scheme):
            return _MASK
        rest = re.split(r"[?#]", rest, maxsplit=1)[0]
        # The last @ ends the credentials: a password may hold an unescaped one, a host and a path that we take do not.
        credentials, at, place = rest.rpartition("@")
        if not at:
            return f"{scheme}://{place}"
        user, colon, _ = credentials.partition(":")
        return f"{scheme}://{user}{f':{_MASK}' if colon else ''}@{place}"

    def __repr__(self) -> str:
        return f"Secret('{self.masked}')"

    def __str__(self) -> str:
        return self.masked

    def __format__(self, spec: str) -> str:
        return format(self.masked, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Secret, (self.masked,))


class Renewed(Secret):
    """A secret that is asked for again each time it is revealed, so that a new connection has the present one."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], str]) -> None:
        self._ask = ask
        super().__init__(ask())

    def reveal(self) -> str:
        """Ask for the text. What could be had at the start and cannot be had now is an outage, which may end."""
        try:
            self._text = self._ask()
        except ConfigurationError as error:
            raise StoreUnavailable(str(error)) from None
        return self._text


def hidden(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A driver's arguments, fit to be kept: what is a password is a secret."""
    return {
        name: Secret(value) if "password" in name and isinstance(value, str) and value else value
        for name, value in arguments.items()
    }


def revealed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same, for the driver alone."""
    return {name: value.reveal() if isinstance(value, Secret) else value for name, value in arguments.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUrl:
    """A URL taken apart. Only `secret` and `password` know the password; `masked` is what people see."""

    secret: Secret
    scheme: str
    user: str | None = None
    password: Secret | None = None
    hosts: str = ""
    """Host and port as they were written; PostgreSQL takes several."""
    path: str = ""
    options: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def masked(self) -> str:
        return self.secret.masked

    def scrub(self, text: str) -> str:
        """A text of the driver's without our password, however it was written."""
        for secret in self._secrets():
            text = text.replace(secret, _MASK)
        return text

    def _secrets(self) -> list[str]:
        found = [self.password.last] if self.password else []
        found += [value for name, value in self.options.items() if "password" in name.lower() and value]
        escaped = [quote(secret, safe="") for secret in found]
        return sorted({*found, *escaped}, key=len, reverse=True)

    def refuse_unknown(self, known: frozenset[str]) -> None:
        """Raise for an option that this kind of store does not have: a typing error must not go unnoticed."""
        for name in self.options:
            if name not in known:
                hint = did_you_mean(name, known, f"known are: {', '.join(sorted(known)) or 'none'}.")
                raise ConfigurationError(
                    f"store {self.masked}: option {_shown(name)} is not known; {hint} Nothing was opened."
                )


def parse(url: str | Secret) -> StoreUrl:
    """Take a store's URL apart; an error never shows more of it than its scheme."""
    source, secret = url, Secret(url)
    text = secret.last
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise ConfigurationError(
            "the store's URL has no scheme; write for example sqlite:///solocron.db or "
            "postgresql://user@host/database. Nothing was opened."
        )
    scheme = scheme.lower()
    if scheme not in _SCHEMES:
        _refuse_scheme(scheme)
    rest, _, fragment = rest.partition("#")
    rest, _, query = rest.partition("?")
    if fragment or any(ord(character) < 32 for character in text):
        raise ConfigurationError(
            f"the {scheme} store's URL cannot be read: it holds a control character or an unescaped '#'; "
            "write %23 for a '#' in a password. Nothing was opened."
        )
    place, slash, path = rest.partition("/")
    credentials, at, hosts = place.rpartition("@")
    if not at and "@" in path and scheme not in ("sqlite", "memory"):
        raise ConfigurationError(
            f"the {scheme} store's URL cannot be read: write %2F for a '/' in a password. Nothing was opened."
        )
    user, colon, password = credentials.partition(":")
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise ConfigurationError(
            f"the {scheme} store's URL cannot be read: its options are not name=value&name=value. Nothing was opened."
        ) from None
    return StoreUrl(
        secret=secret,
        scheme=scheme,
        user=unquote(user) if user else None,
        password=_password(source, Secret(unquote(password)) if colon else None, named=bool(user)),
        hosts=hosts,
        path=unquote(slash + path),
        options=options,
    )


def _password(source: str | Secret, written: Secret | None, *, named: bool) -> Secret | None:
    """Return the password of a URL: as written, as its file has it now, or as a command prints it."""
    if isinstance(source, Renewed):
        return Renewed(lambda: _written_password(source.reveal())) if written is not None else _by_command(named)
    return _by_command(named) if written is None else written


def _by_command(named: bool) -> Secret | None:
    """Return the password that SOLOCRON_PASSWORD_COMMAND prints, for a URL that names a user and no password."""
    command = surroundings.password_command()
    return Renewed(lambda: printed_by(command)) if command and named else None


def _written_password(url: str) -> str:
    credentials, _, _ = url.partition("://")[2].partition("/")[0].rpartition("@")
    return unquote(credentials.partition(":")[2])


def url_of_environment() -> Secret | None:
    """Return the URL of SOLOCRON_STORE, or of the file that SOLOCRON_STORE_FILE names; None if neither is set."""
    url, file = surroundings.store_url(), surroundings.store_file()
    if url and file:
        raise ConfigurationError(
            "SOLOCRON_STORE and SOLOCRON_STORE_FILE are both set; nothing was opened. Leave one of them out."
        )
    if file:
        return Renewed(lambda: written_in(file))
    return Secret(url) if url else None


def make_store(url: str | Secret, *, namespace: str = "default", lease: timedelta = _LEASE) -> Store:
    """The store of a URL, not opened yet. `lease` bounds its timeouts, so that a silent server costs no lease."""
    parts = parse(url)
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", namespace):
        raise ConfigurationError(
            f"namespace {_shown(namespace)} is not a name: take 1 to 64 letters, digits, '_', '.' or '-'. "
            "Nothing was opened."
        )
    known = _SCHEMES[parts.scheme]
    try:
        module = import_module(known.module)
    except ModuleNotFoundError as error:
        if known.driver is None or error.name is None or error.name.partition(".")[0] != known.driver:
            raise
        raise MissingExtra(
            f'a {parts.scheme} store needs the package {known.driver!r}: pip install "solocron[{known.extra}]". '
            "Nothing was opened."
        ) from None
    if parts.scheme == "memory":
        name = (parts.hosts + parts.path).strip("/")
        return module.MemoryStore(name, namespace=namespace)  # type: ignore[no-any-return]
    store = getattr(module, known.store)
    return store(parts if known.store != "RedisStore" else url, namespace=namespace, lease=lease)  # type: ignore[no-any-return]


def _refuse_scheme(scheme: str) -> NoReturn:
    shown = _shown(scheme)
    near = [_ALIASES[scheme]] if scheme in _ALIASES else nearest(scheme, _SCHEMES)
    hint = f" Did you mean {near[0]}://?" if near else ""
    raise ConfigurationError(
        f"no store has the scheme {shown}; known are {', '.join(f'{known}://' for known in _SCHEMES)}.{hint} "
        "Nothing was opened."
    )


def _shown(text: str) -> str:
    """A piece of user input, short and printable; long ones may be secrets in the wrong place."""
    return repr(text) if len(text) <= 32 else repr(text[:12] + "...")
