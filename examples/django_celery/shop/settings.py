"""The store is the default database, a MariaDB."""

import os
from urllib.parse import unquote, urlsplit

import pymysql

pymysql.install_as_MySQLdb()  # or install mysqlclient
place = urlsplit(os.environ.get("DATABASE_URL", "mysql://root@localhost/shop"))

SECRET_KEY = os.environ.get("SECRET_KEY", "only for this example")
DEBUG = True
INSTALLED_APPS = ["solocron.django", "books"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.mysql",
        "NAME": place.path.strip("/"),
        "USER": unquote(place.username or ""),
        "PASSWORD": unquote(place.password or ""),
        "HOST": place.hostname or "",
        "PORT": place.port or "",
    }
}
SOLOCRON = {"STORE": "default", "LEASE": "3s", "CARRIERS": "shop.celery.carriers"}
