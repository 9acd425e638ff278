"""Subscribers of the events: logs, metrics."""
