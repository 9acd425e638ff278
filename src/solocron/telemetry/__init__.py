"""Subscribers of the events: log lines, and alarms with the places they are sent to."""
