"""The project; Celery's worker finds its app here."""

from shop.celery import app as celery_app

__all__ = ["celery_app"]
