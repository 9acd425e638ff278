"""A whole cluster in one thread, replayable by seed: the shipped engine, unchanged, on virtual time.

Every loop of every node is a greenlet; every store call and every wait is a switch point; one seed decides which task
runs next and what goes wrong.
"""
