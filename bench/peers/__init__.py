"""Adapters: the same no-op work by other schedulers, each run by the interpreter of its own environment.

Nothing here imports Solocron. Work that falls due is handed to a peer in the form that suits it best: where its
periodic jobs live in code only, as jobs deferred to the instant, which spares it the schedule.
"""
