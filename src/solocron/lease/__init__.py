"""The lease of a session: what a node knows of the store's clock, and how far it may trust its own lease."""
