"""Slots and workdays computed a second way, without a line of the code that they judge."""
