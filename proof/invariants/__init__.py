"""The invariants that every commit, every line of the bodies' ledger, and a quiescent world must satisfy."""
