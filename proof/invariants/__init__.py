"""The invariants that every commit, every line of the bodies' ledger, and a world at rest must satisfy."""
