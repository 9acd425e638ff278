"""Commands of `manage.py`, a file each."""
