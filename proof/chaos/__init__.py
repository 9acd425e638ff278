"""Real processes on real servers, hurt in every way of the fault matrix; the judge is the ledger that the jobs write.

    make chaos                                     every store, all scenarios, a table and build/chaos/*.json
    make chaos ARGS="postgres --seconds 60"        one store, longer under fire
    make chaos ARGS="--only failover-async"        the store fails over and loses its last commits
    make chaos ARGS="sqlite --only restore"        a backup is put back under living nodes
    make chaos ARGS=--report                       all of it, and the figures go into docs/explanation/chaos.md

Each fault is a small object with its number in the matrix. A run in which an enabled fault never struck fails.
"""
