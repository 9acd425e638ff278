"""The room for speed: fast frozen values and the fast claim. Outside it, ordinary code."""
