"""A run in a process of its own: a guard that ends with the lease, and the worker that the guard watches."""
