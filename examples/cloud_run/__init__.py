"""A service that scales to zero, woken by a timer. See README.md."""
