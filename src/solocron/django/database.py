"""The URL of a store in a database of Django's.

The connections are Solocron's own: a claim is never part of your transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from django.db import connections

from solocron.errors import ConfigurationError

__all__ = ["in_tests", "is_in_memory", "url_of"]

_POSTGRES = (
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl", "ssl_min_protocol_version"),
    *("channel_binding", "gssencmode", "passfile", "service", "options", "target_session_attrs", "require_auth"),
)
"""Of `OPTIONS`, what concerns the way to the server and the schema; the rest concerns Django's own connections."""


def in_tests() -> bool:
    """Return whether a test runner of Django's is at work, which has prepared its surroundings."""
    from django.test import utils

    return hasattr(utils._TestState, "saved_data")


def is_in_memory(alias: str) -> bool:
    """Return whether the store lies beside the database: no other connection may write to SQLite in a test.

    It is locked by the transaction of the test, or lives in the memory of its connection.
    """
    return in_tests() and connections[alias].vendor == "sqlite"


def url_of(alias: str) -> str:
    """Return the URL of a database as it is now; a test runner has renamed it."""
    connection = connections[alias]
    if is_in_memory(alias):
        return f"memory://django-{alias}"
    known: Mapping[str, Any] = connection.settings_dict
    match connection.vendor:
        case "postgresql":
            return _postgres(known)
        case "mysql":
            return _mysql(known, alias)
        case "sqlite":
            return _sqlite(known, alias)
        case other:
            raise ConfigurationError(
                f"DATABASES[{alias!r}] is a {other} database, which is not a store. Nothing was started; set "
                "SOLOCRON['STORE'] to the URL of one, or to an alias of PostgreSQL, MySQL, MariaDB or SQLite."
            )


def _postgres(known: Mapping[str, Any]) -> str:
    given: Mapping[str, Any] = known.get("OPTIONS") or {}
    options = {name: str(given[name]) for name in _POSTGRES if given.get(name)}
    host = str(known.get("HOST") or "")
    if host.startswith("/"):  # the folder of a socket
        options["host"], host = host, ""
    return _url("postgresql", known, host, options)


def _mysql(known: Mapping[str, Any], alias: str) -> str:
    given: Mapping[str, Any] = known.get("OPTIONS") or {}
    if given.get("read_default_file"):
        raise ConfigurationError(
            f"DATABASES[{alias!r}] takes its place from a file of MySQL's (read_default_file), which is not read here. "
            "Nothing was started; set SOLOCRON['STORE'] to a URL."
        )
    tls = given.get("ssl") or {}
    options = {
        f"ssl_{name}": str(tls[name]) for name in ("ca", "cert", "key") if isinstance(tls, dict) and tls.get(name)
    }
    host = str(known.get("HOST") or "")
    if given.get("unix_socket") or host.startswith("/"):
        options["unix_socket"], host = str(given.get("unix_socket") or host), "localhost"
    return _url("mysql", known, host or "localhost", options)


def _sqlite(known: Mapping[str, Any], alias: str) -> str:
    name = str(known["NAME"])
    if name == ":memory:" or name.startswith("file:"):
        raise ConfigurationError(
            f"DATABASES[{alias!r}] is an SQLite database in memory, which no other process can share. Nothing was "
            "started; give it a file, or set SOLOCRON['STORE'] to a URL."
        )
    return f"sqlite:///{quote(name)}"


def _url(scheme: str, known: Mapping[str, Any], host: str, options: Mapping[str, str]) -> str:
    user, password = str(known.get("USER") or ""), str(known.get("PASSWORD") or "")
    credentials = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    place = f"[{host}]" if ":" in host else host
    port = f":{known['PORT']}" if known.get("PORT") else ""
    query = f"?{urlencode(options, safe='/', quote_via=quote)}" if options else ""
    at = f"{credentials}@" if credentials else ""
    return f"{scheme}://{at}{place}{port}/{quote(str(known.get('NAME') or ''), safe='')}{query}"
