"""Dispatchers carry calls out: on threads, on an event loop, in a process of its own."""
