"""The JSON API: one file per noun. A handler reads or asks, and returns a frozen value."""
