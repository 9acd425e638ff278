"""The HTTP service: a JSON API and the dashboard, from one table of routes. Nothing listens unless it is asked to."""
