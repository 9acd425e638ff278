"""The lease protocol as a model of a small fleet, explored completely."""
