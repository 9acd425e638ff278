"""The nouns and the state machine: `(document, event, store time) -> (new document, records)`, nothing else.

No I/O, no clock, no threads, no randomness. Overlap, catch-up, retries, fencing, takeover and pausing exist once, here,
for every store.
"""
