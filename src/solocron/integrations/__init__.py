"""Edges to other systems. Nothing inside imports them; each is imported by whoever needs it."""
