"""Three workers; each is a node before its first request, and drains when it ends."""

from solocron.gunicorn import post_worker_init, worker_exit

__all__ = ["post_worker_init", "worker_exit"]

workers = 3
preload_app = True
