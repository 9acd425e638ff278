"""Carriers for the queues that people have: each takes runs to its workers, which pick them up."""
