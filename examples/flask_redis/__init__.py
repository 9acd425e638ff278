"""Flask under gunicorn, with Redis as the store. See README.md."""
