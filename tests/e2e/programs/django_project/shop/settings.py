"""The store is the default database: PostgreSQL where the test names one, else an SQLite file."""

import os
from urllib.parse import unquote, urlsplit

SECRET_KEY = "of a test"
DEBUG = True
ALLOWED_HOSTS = ["testserver", "127.0.0.1"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "solocron.django",
    "books",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True


def database(url: str) -> dict[str, object]:
    parts = urlsplit(url)
    if parts.scheme != "postgresql":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.strip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
        "CONN_MAX_AGE": 60,
    }


DATABASES = {
    "default": database(os.environ.get("DATABASE", "")),
    "other": {"ENGINE": "django.db.backends.sqlite3", "NAME": "other.sqlite3"},
}
SOLOCRON = {"STORE": "default", "LEASE": "2s"}
