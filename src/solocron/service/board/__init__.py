"""The service's memory of a namespace: bounded, shared by all who look, rebuilt from the store at will."""
