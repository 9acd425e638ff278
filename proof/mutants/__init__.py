"""Bugs put into the shipped code on purpose, in memory: the suites are worth what they catch."""
