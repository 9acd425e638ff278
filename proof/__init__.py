"""The proof, which the wheel does not carry: simulated worlds, invariants, models, mutants and chaos.

Everything here imports the shipped package; the package imports nothing from here. `python -m proof --help` lists the
commands, and `make simulate`, `make proof`, `make mutants` and `make chaos` call them.
"""
