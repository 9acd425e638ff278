"""Gunicorn's configuration with Solocron's hooks."""

from solocron.gunicorn import post_worker_init, worker_exit

__all__ = ["post_worker_init", "worker_exit"]
