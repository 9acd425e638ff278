"""Simulated worlds: the shipped engine under faults on virtual time, one world or a campaign of thousands."""
