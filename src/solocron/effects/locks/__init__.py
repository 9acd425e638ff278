"""Leases taken by hand: locks and leadership, on the same documents, clocks and fences as jobs."""
