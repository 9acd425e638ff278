"""The node: one file per loop, each a `step` that says when it wants to be called again."""
