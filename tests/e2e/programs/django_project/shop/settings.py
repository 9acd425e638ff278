"""The store is the default database: PostgreSQL or MariaDB where the test names one, else an SQLite file."""

import os
from urllib.parse import unquote, urlsplit

SECRET_KEY = "of a test"
DEBUG = True
ALLOWED_HOSTS = ["testserver", "127.0.0.1"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "solocron.django",
    "books",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "shop.errors.AnswerErrors",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "shop.urls"
MIGRATION_MODULES = dict.fromkeys(("admin", "auth", "contenttypes", "sessions"))  # their tables without their history
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True


def database(url: str) -> dict[str, object]:
    parts = urlsplit(url)
    if not parts.scheme:
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}
    if parts.scheme != "postgresql":
        import pymysql

        pymysql.install_as_MySQLdb()  # Django's own choice, mysqlclient, has to be compiled
    return {
        "ENGINE": f"django.db.backends.{'postgresql' if parts.scheme == 'postgresql' else 'mysql'}",
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
SOLOCRON = {"STORE": "default", "LEASE": "6s"}  # a busy machine must not cost a node its lease
