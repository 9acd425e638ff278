"""The books of the shop."""
